#pragma once

#include "transport/verbs/library.h"

namespace tutti::provider {

// Each of these functions fills in a part of the table. The functions in the table act on the current
// `Machine`.
void add_device_calls(verbs::Functions& table);
void add_memory_calls(verbs::Functions& table);
void add_queue_calls(verbs::Functions& table);
void add_pair_calls(verbs::Functions& table);

// Fills in the functions for memory windows that a context points to.
void add_window_operations(ibv_context_ops& operations);
// Returns the functions that a context points to.
ibv_context_ops context_operations();

}  // namespace tutti::provider
