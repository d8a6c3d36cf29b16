// Loaded into a user-mode kernel (LD_PRELOAD) on processors with AMX. It restores the registers of its processes with 2,696 bytes, as
// many as AVX-512 has, and the kernel below it refuses to set fewer than the processor has: all of its processes fail. (Linux 6.13 and
// later allocate as many bytes as the processor has.)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

typedef long (*Ptrace)(enum __ptrace_request, pid_t, void *, void *);

static char state[1 << 16];

static long set_state(Ptrace next, pid_t pid, const struct iovec *given) {
  // Reading returns how many bytes there are. Those that the user-mode kernel does not know are zero: not in use.
  struct iovec whole = {state, sizeof state};
  if (next(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &whole) < 0) return -1;
  size_t known = given->iov_len < whole.iov_len ? given->iov_len : whole.iov_len;
  memset(state, 0, whole.iov_len);
  memcpy(state, given->iov_base, known);
  return next(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &whole);
}

long ptrace(enum __ptrace_request request, ...) {
  static Ptrace next;
  if (next == NULL) next = (Ptrace)dlsym(RTLD_NEXT, "ptrace");
  va_list arguments;
  va_start(arguments, request);
  pid_t pid = va_arg(arguments, pid_t);
  void *address = va_arg(arguments, void *);
  void *data = va_arg(arguments, void *);
  va_end(arguments);
  if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE) return set_state(next, pid, data);
  return next(request, pid, address, data);
}
