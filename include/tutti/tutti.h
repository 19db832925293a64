#pragma once

// This header includes everything that a program needs: tutti::init, Communicator, Work, Buffer, ReduceOp,
// Status.
#include <tutti/buffer.h>
#include <tutti/communicator.h>
#include <tutti/float16.h>
#include <tutti/init.h>
#include <tutti/reduce_op.h>
#include <tutti/status.h>
#include <tutti/types.h>
#include <tutti/version.h>
#include <tutti/work.h>
