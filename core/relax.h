#pragma once

namespace tutti {

// `relax` tells the processor that the calling loop waits for memory to change.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tutti
