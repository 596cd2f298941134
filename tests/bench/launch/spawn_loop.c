// The floor: N times posix_spawn of /bin/true, then N times waitpid. Prints the seconds that this took.
//
//   spawn_loop N
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char** environ;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 0;
  pid_t* pids = calloc((size_t)count + 1, sizeof(pid_t));
  char* command[] = {"/bin/true", NULL};
  const double begin = seconds();
  for (int i = 0; i < count; ++i) {
    if (posix_spawn(&pids[i], command[0], NULL, NULL, command, environ) != 0) return 1;
  }
  for (int i = 0; i < count; ++i) {
    int status = 1;
    if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) return 1;
  }
  printf("%.9f\n", seconds() - begin);
  free(pids);
  return 0;
}
