#pragma once

#include <functional>

#include <tutti/status.h>

namespace tutti {

// A `StreamWait` makes a stream wait until a call has ended. It may be called at most once, on any thread,
// even if the session of the call no longer exists. It is empty if the call has ended already.
//
// It blocks while the stream has no room for more work. The work in the stream may depend on the
// driving thread, so the thread that calls a `StreamWait` should not drive.
using StreamWait = std::function<Status()>;

}  // namespace tutti
