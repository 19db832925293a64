#pragma once

// Everything a program needs: tutti::init, Communicator, Work, Buffer, ReduceOp, Status.
#include <tutti/bindings/cpp/init.h>
#include <tutti/bindings/cpp/version.h>
#include <tutti/collectives/communicator.h>
#include <tutti/collectives/work.h>
#include <tutti/core/buffer.h>
#include <tutti/core/float16.h>
#include <tutti/core/reduce_op.h>
#include <tutti/core/status.h>
#include <tutti/core/types.h>
