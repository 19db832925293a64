#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <tutti/secret.h>

namespace tutti {

// The first four functions produce random bytes from the kernel's generator. The bytes cannot be guessed,
// and differ in every process.
void fill_random(std::span<unsigned char> bytes);
std::uint64_t random_number();
std::string random_hex(std::size_t bytes);
Secret random_secret(std::size_t bytes);  // also in hex
std::string to_hex(std::span<const unsigned char> bytes);

}  // namespace tutti
