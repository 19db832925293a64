#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <tutti/core/export.h>

namespace tutti {

// From the kernel's generator: cannot be guessed, and different in every process.
TUTTI_API void fill_random(std::span<unsigned char> bytes);
TUTTI_API std::string random_hex(std::size_t bytes);
TUTTI_API std::string to_hex(std::span<const unsigned char> bytes);

}  // namespace tutti
