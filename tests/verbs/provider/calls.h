#pragma once

#include "transport/verbs/library.h"

namespace tutti::provider {

// Each of these functions fills in some functions of the table, which act on the current `Machine`. Each has
// a file of its own.
void add_device_calls(verbs::Functions& table);
void add_memory_calls(verbs::Functions& table);
void add_queue_calls(verbs::Functions& table);
void add_pair_calls(verbs::Functions& table);

// Fills in the functions for memory windows, to which a context points.
void add_window_operations(ibv_context_ops& operations);
// Returns the functions to which a context points.
ibv_context_ops context_operations();

}  // namespace tutti::provider
