#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <tutti/secret.h>

namespace tutti {

// Random bytes come from the kernel's generator: they cannot be guessed, and differ in every process.
void fill_random(std::span<unsigned char> bytes);
std::string random_hex(std::size_t bytes);
Secret random_secret(std::size_t bytes);  // in hex, too
std::string to_hex(std::span<const unsigned char> bytes);

}  // namespace tutti
