#pragma once

#include "transport/meeting/connection.h"

namespace tutti::tcp {

// A `Pipe` is one TCP connection.
using Pipe = meeting::Connection;

}  // namespace tutti::tcp
