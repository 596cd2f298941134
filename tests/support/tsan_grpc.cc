// Tells ThreadSanitizer what gRPC orders. Debian's gRPC and Abseil are not instrumented, so that their locks,
// counts and queues are not seen; what one thread hands to gRPC and another takes out of it would look like a
// race of ours. This library stands before them (LD_PRELOAD, scripts/sanitize thread) and says for each call
// what it promises, no more: a lock orders those who hold it, the end of an operation comes after its start
// and before its tag is taken from the queue, bytes are freed after the last use. What is not ordered by such
// a promise is still reported.
#include <dlfcn.h>
#include <grpc/grpc.h>

#include <cstdint>

extern "C" {
// Of the sanitizer's runtime; null in a process without it.
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
}

namespace {

void acquire(void* address) {
  if (__tsan_acquire != nullptr && address != nullptr) __tsan_acquire(address);
}

void release(void* address) {
  if (__tsan_release != nullptr && address != nullptr) __tsan_release(address);
}

template <typename Function>
Function* next_of(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// One for all slices: gRPC passes their counts around where nobody can follow them.
char handed_over;

/// absl::Duration.
struct Duration {
  std::int64_t high;
  std::uint32_t low;
};

}  // namespace

// What FUNCTION is in the library itself.
#define FLEETRUN_REAL(function, name) static auto* const real = next_of(&function, name)
#define FLEETRUN_LOCK "_ZN4absl7debian35Mutex4LockEv"
#define FLEETRUN_TRY_LOCK "_ZN4absl7debian35Mutex7TryLockEv"
#define FLEETRUN_UNLOCK "_ZN4absl7debian35Mutex6UnlockEv"
#define FLEETRUN_WAIT "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE"
#define FLEETRUN_WAIT_FOR "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE"
#define FLEETRUN_UNREF "_ZN19grpc_slice_refcount5UnrefEv"
#define FLEETRUN_GIVE_BACK "_ZN9grpc_core16NewSliceRefcount7DestroyEP19grpc_slice_refcount"
#define FLEETRUN_END \
  "_Z14grpc_cq_end_opP21grpc_completion_queuePvN4absl7debian36StatusEPFvS1_P18grpc_cq_completionES1_S6_b"

extern "C" {

void absl_lock(void* mutex) asm(FLEETRUN_LOCK);
void absl_lock(void* mutex) {
  FLEETRUN_REAL(absl_lock, FLEETRUN_LOCK);
  real(mutex);
  acquire(mutex);
}

bool absl_try_lock(void* mutex) asm(FLEETRUN_TRY_LOCK);
bool absl_try_lock(void* mutex) {
  FLEETRUN_REAL(absl_try_lock, FLEETRUN_TRY_LOCK);
  const bool locked = real(mutex);
  if (locked) acquire(mutex);
  return locked;
}

void absl_unlock(void* mutex) asm(FLEETRUN_UNLOCK);
void absl_unlock(void* mutex) {
  FLEETRUN_REAL(absl_unlock, FLEETRUN_UNLOCK);
  release(mutex);
  real(mutex);
}

void absl_wait(void* condition, void* mutex) asm(FLEETRUN_WAIT);
void absl_wait(void* condition, void* mutex) {
  FLEETRUN_REAL(absl_wait, FLEETRUN_WAIT);
  release(mutex);
  real(condition, mutex);
  acquire(mutex);
}

bool absl_wait_for(void* condition, void* mutex, Duration time) asm(FLEETRUN_WAIT_FOR);
bool absl_wait_for(void* condition, void* mutex, Duration time) {
  FLEETRUN_REAL(absl_wait_for, FLEETRUN_WAIT_FOR);
  release(mutex);
  const bool late = real(condition, mutex, time);
  acquire(mutex);
  return late;
}

// Bytes that were handed over are given back to us after the handing over and the last use.
grpc_slice grpc_slice_new_with_user_data(void* bytes, std::size_t size, void (*give_back)(void*),
                                         void* argument) {
  FLEETRUN_REAL(grpc_slice_new_with_user_data, "grpc_slice_new_with_user_data");
  release(&handed_over);
  return real(bytes, size, give_back, argument);
}

void unref_slice(void* count) asm(FLEETRUN_UNREF);
void unref_slice(void* count) {
  FLEETRUN_REAL(unref_slice, FLEETRUN_UNREF);
  release(&handed_over);
  real(count);
}

void give_back_slice(void* count) asm(FLEETRUN_GIVE_BACK);
void give_back_slice(void* count) {
  FLEETRUN_REAL(give_back_slice, FLEETRUN_GIVE_BACK);
  acquire(&handed_over);
  real(count);
}

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, std::size_t count, void* tag,
                                      void* reserved) {
  FLEETRUN_REAL(grpc_call_start_batch, "grpc_call_start_batch");
  release(tag);
  return real(call, ops, count, tag, reserved);
}

grpc_call_error grpc_server_request_call(grpc_server* server, grpc_call** call, grpc_call_details* details,
                                         grpc_metadata_array* metadata, grpc_completion_queue* bound,
                                         grpc_completion_queue* notified, void* tag) {
  FLEETRUN_REAL(grpc_server_request_call, "grpc_server_request_call");
  release(tag);
  return real(server, call, details, metadata, bound, notified, tag);
}

void end_operation(void* queue, void* tag, void* status, void* done, void* argument, void* storage,
                   bool internal) asm(FLEETRUN_END);
void end_operation(void* queue, void* tag, void* status, void* done, void* argument, void* storage,
                   bool internal) {
  FLEETRUN_REAL(end_operation, FLEETRUN_END);
  acquire(tag);
  release(tag);
  real(queue, tag, status, done, argument, storage, internal);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline, void* reserved) {
  FLEETRUN_REAL(grpc_completion_queue_next, "grpc_completion_queue_next");
  const grpc_event event = real(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) acquire(event.tag);
  if (event.type == GRPC_QUEUE_SHUTDOWN) acquire(queue);
  return event;
}

void grpc_completion_queue_shutdown(grpc_completion_queue* queue) {
  FLEETRUN_REAL(grpc_completion_queue_shutdown, "grpc_completion_queue_shutdown");
  release(queue);
  real(queue);
}

}  // extern "C"
