// Shifts the wall clock of the program it is loaded into, as an administrator or a time server would: by the seconds
// that are, as a 64-bit number, in the file that CLOCK_SHIFT names. Other clocks run on as they are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *shift;

__attribute__((constructor)) static void start(void) {
  static const int64_t none = 0;
  const char *name = getenv("CLOCK_SHIFT");
  int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
  shift = at == MAP_FAILED ? &none : at;
  if (fd >= 0) close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (result == 0 && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *shift;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec fine;
  int result = clock_gettime(CLOCK_REALTIME, &fine);
  now->tv_sec = fine.tv_sec;
  now->tv_usec = fine.tv_nsec / 1000;
  return result;
}

time_t time(time_t *now) {
  struct timespec fine;
  clock_gettime(CLOCK_REALTIME, &fine);
  if (now) *now = fine.tv_sec;
  return fine.tv_sec;
}
