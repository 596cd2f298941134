// What the launchers of the bench start: a process that says that it is there, and then waits in pause().
//
//   worker SOCKET [stubborn]
//
// It connects to the unix socket, sends the time of its main() (CLOCK_MONOTONIC, ns, 8 bytes) and pauses. On SIGUSR1 it
// sends the time once more and ends with status 1: that is the death that is measured. `stubborn` ignores SIGTERM.
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int connection = -1;

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void die(int number) {
  (void)number;
  const int64_t at = monotonic_ns();
  (void)!write(connection, &at, sizeof at);
  _exit(1);
}

int main(int argc, char** argv) {
  const int64_t at = monotonic_ns();
  if (argc < 2 || strlen(argv[1]) >= sizeof(((struct sockaddr_un*)0)->sun_path)) return 2;
  if (argc > 2) signal(SIGTERM, SIG_IGN);
  struct sockaddr_un place = {.sun_family = AF_UNIX};
  strcpy(place.sun_path, argv[1]);
  connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  signal(SIGUSR1, die);
  if (connect(connection, (struct sockaddr*)&place, sizeof place) != 0) return 3;
  if (write(connection, &at, sizeof at) != sizeof at) return 4;
  for (;;) pause();
}
