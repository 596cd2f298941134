// A process that does what it can to outlive its launcher: it ignores every signal that may be ignored, and so do its
// descendants; one leaves the session, one is orphaned in a session of its own, and one is stopped.
//
//   clingy READY     appends a byte to the file READY once they are all there
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for_ever(void) {
  for (;;) pause();
}

int main(int argc, char** argv) {
  for (int number = 1; number < 32; ++number) {
    if (number != SIGCHLD && number != SIGTTOU && number != SIGSTOP) signal(number, SIG_IGN);
  }
  prctl(PR_SET_PDEATHSIG, 0);
  if (fork() == 0) {  // leaves the session
    setsid();
    wait_for_ever();
  }
  const pid_t middle = fork();
  if (middle == 0) {  // leaves an orphan in a session of its own
    setsid();
    if (fork() == 0) wait_for_ever();
    _exit(0);
  }
  waitpid(middle, NULL, 0);
  const pid_t stopped = fork();
  if (stopped == 0) {
    setsid();
    wait_for_ever();
  }
  kill(stopped, SIGSTOP);
  const int ready = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  (void)!write(ready, "x", 1);
  wait_for_ever();
}
