#pragma once

#include <cstddef>

namespace tutti {

// `stream_copy` copies to memory that will not be read soon: past the caches where the processor can. An
// ordinary store first fetches the line that it is about to overwrite, so that copying far more than the
// caches hold moves 1.5 times as much. The ranges must not overlap.
//
// Its stores are not ordered, not even by a release that follows: call `stream_fence` in between.
void stream_copy(void* to, const void* from, std::size_t bytes);
void stream_fence();

}  // namespace tutti
