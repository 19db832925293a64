#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tutti {

// Random bytes come from the kernel's generator: they cannot be guessed, and differ in every process.
void fill_random(std::span<unsigned char> bytes);
std::string random_hex(std::size_t bytes);
std::string to_hex(std::span<const unsigned char> bytes);

}  // namespace tutti
