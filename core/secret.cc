#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include <tutti/secret.h>

#include "core/security/digest.h"

namespace tutti {

Secret::~Secret() { security::wipe(bytes_); }

Secret Secret::joined(std::initializer_list<std::string_view> parts) {
  std::size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  Secret all;
  all.bytes_.reserve(bytes);  // reserved first, since growing would leave copies of the secret behind
  for (const std::string_view part : parts) all.bytes_.insert(all.bytes_.end(), part.begin(), part.end());
  return all;
}

int Secret::read_from(int descriptor, std::size_t most) {
  Secret text;
  text.bytes_.resize(most);
  std::size_t size = 0;
  ssize_t got = 1;
  while (got != 0 && size < most) {
    got = ::read(descriptor, text.bytes_.data() + size, most - size);
    if (got > 0) size += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) return errno;
  }
  text.bytes_.resize(size);
  bytes_.swap(text.bytes_);
  return 0;
}

}  // namespace tutti
