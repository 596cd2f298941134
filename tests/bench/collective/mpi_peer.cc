// Open MPI's side of scripts/bench collective: mpirun mpi_peer in|out BYTES…
#include <mpi.h>

#include "tests/bench/collective/reduce_rows.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bench::Ranks ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
  ranks.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  ranks.all_reduce = [](float* input, float* output, std::size_t count) {
    MPI_Allreduce(input == output ? MPI_IN_PLACE : input, output, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  };
  const int status = bench::run(ranks, argc - 1, argv + 1);
  MPI_Finalize();
  return status;
}
