#pragma once

#include <cstddef>

namespace tutti {

// `stream_copy` copies to memory that will not be read soon, bypassing the caches if the processor can. An
// ordinary store first fetches the line that it overwrites. In a copy that is far larger than the caches,
// these fetches increase the memory traffic by half. The ranges must not overlap.
//
// A release store does not wait for the stores of an earlier `stream_copy`, so call `stream_fence` before the
// release store.
void stream_copy(void* to, const void* from, std::size_t bytes);
void stream_fence();

}  // namespace tutti
