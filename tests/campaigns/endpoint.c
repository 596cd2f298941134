/* Binds PADDLE_CURRENT_ENDPOINT, and PADDLE_MASTER too as rank 0, without SO_REUSEADDR; listens for ARGV[1]
   milliseconds; ends with 98 when a port is somebody else's. It says nothing, so that fleetrun does not try again. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int hold(const char* endpoint) {
  char host[64] = "";
  const char* colon = strrchr(endpoint, ':');
  struct sockaddr_in address = {.sin_family = AF_INET};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!colon || (size_t)(colon - endpoint) >= sizeof host) return 0;
  memcpy(host, endpoint, (size_t)(colon - endpoint));
  address.sin_port = htons((unsigned short)atoi(colon + 1));
  return inet_pton(AF_INET, host, &address.sin_addr) == 1 &&
         bind(fd, (struct sockaddr*)&address, sizeof address) == 0 && listen(fd, 4) == 0;
}

int main(int argc, char** argv) {
  const char *own = getenv("PADDLE_CURRENT_ENDPOINT"), *rank = getenv("PADDLE_TRAINER_ID"),
             *master = getenv("PADDLE_MASTER");
  if (argc != 2 || !own || !rank || !master) return 2;
  if (!hold(own) || (strcmp(rank, "0") == 0 && !hold(master))) return 98;
  poll(NULL, 0, atoi(argv[1]));
  return 0;
}
