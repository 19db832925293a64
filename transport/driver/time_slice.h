#pragma once

namespace tutti {

// `shorten_time_slice` asks the kernel, once for each thread, to give the calling thread the shortest time
// slices that there are (0.1 ms). The thread's share of the processor stays the same. Since Linux 6.12, a
// thread that yields gives up the rest of its slice. So with short slices, a thread may yield often and still
// soon gets the processor back (https://docs.kernel.org/scheduler/sched-eevdf.html). The function does
// nothing on older kernels, or if the thread has real-time scheduling. It may be called by any thread.
void shorten_time_slice();

}  // namespace tutti
