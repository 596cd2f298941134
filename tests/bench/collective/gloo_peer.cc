// Gloo's side of scripts/bench collective, over loopback TCP:
// gloo_peer FOLDER RANK SIZE ring|bcube in|out BYTES…
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "tests/bench/collective/reduce_rows.h"

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  bench::Ranks ranks;
  ranks.rank = std::atoi(argv[2]);
  ranks.size = std::atoi(argv[3]);
  const bool ring = std::string(argv[4]) == "ring";
  gloo::transport::tcp::attr where;
  where.hostname = "127.0.0.1";
  gloo::rendezvous::FileStore store(argv[1]);
  auto device = gloo::transport::tcp::CreateDevice(where);
  auto context = std::make_shared<gloo::rendezvous::Context>(ranks.rank, ranks.size);
  context->connectFullMesh(store, device);
  std::uint32_t tag = 0;
  ranks.barrier = [&] {
    gloo::BarrierOptions options(context);
    options.setTag(++tag);
    gloo::barrier(options);
  };
  ranks.all_reduce = [&](float* input, float* output, std::size_t count) {
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(ring ? gloo::AllreduceOptions::Algorithm::RING
                              : gloo::AllreduceOptions::Algorithm::BCUBE);
    if (input != output) options.setInput(input, count);
    options.setOutput(output, count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTag(++tag);
    gloo::allreduce(options);
  };
  return bench::run(ranks, argc - 5, argv + 5);
}
