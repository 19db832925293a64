#include <string>

#include <tutti/c.h>

#include "bindings/c/handles.h"

using namespace tutti::c;

int tutti_work_wait(tutti_work* work) {
  return guarded([&] { checked(work, "the work").work.wait(); });
}

int tutti_work_wait_for(tutti_work* work, int64_t timeout_ns, int* done) {
  return guarded([&] {
    checked(done, "the output pointer for the answer") = 0;
    tutti::Work& handle = checked(work, "the work").work;
    try {
      *done = handle.wait_for(duration(timeout_ns)) ? 1 : 0;
    } catch (...) {
      *done = handle.done() ? 1 : 0;
      throw;
    }
  });
}

int tutti_work_wait_on(tutti_work* work, void* stream) {
  return guarded([&] { checked(work, "the work").work.wait_on(stream); });
}

int tutti_work_test(const tutti_work* work) { return work == nullptr || work->work.done() ? 1 : 0; }

int tutti_work_status(const tutti_work* work) {
  return guarded([&] {
    const tutti::Status status = checked(work, "the work").work.status();
    if (!status.ok()) throw tutti::Error(status);
  });
}

int tutti_work_then(tutti_work* work, tutti_callback callback, void* state) {
  return guarded([&] {
    if (callback == nullptr) throw invalid("the callback is null");
    // This copy keeps the operation alive, since the callback may free the caller's handle.
    tutti::Work handle = checked(work, "the work").work;
    handle.then([callback, state](const tutti::Status& status) {
      const std::string text = status.ok() ? std::string() : status.to_string();
      callback(state, static_cast<int>(status.code()), text.c_str(), status.peer());
    });
  });
}

int tutti_work_received(const tutti_work* work, tutti_received* received) {
  return guarded([&] {
    const tutti::Work::Received what = checked(work, "the work").work.received();
    fill(received, {0, what.source, what.tag, what.bytes});
  });
}

tutti_work* tutti_work_copy(const tutti_work* work) {
  tutti_work* copy = nullptr;
  guarded([&] { copy = new tutti_work(checked(work, "the work")); });
  return copy;
}

void tutti_work_free(tutti_work* work) { delete work; }
