#pragma once

#include <iostream>
#include <sstream>

// Prints a line in one piece and flushes it, so that the lines of several ranks in one terminal do not mix.
template <class... Parts>
void print(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts) << '\n';
  std::cout << line.str() << std::flush;
}
