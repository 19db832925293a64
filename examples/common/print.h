#pragma once

#include <iostream>
#include <sstream>

// Prints one line and flushes it at once, in one piece: the lines of ranks that share a terminal stay whole.
template <class... Parts>
void print(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts) << '\n';
  std::cout << line.str() << std::flush;
}
