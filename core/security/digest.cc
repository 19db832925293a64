#include "core/security/digest.h"

#include <cerrno>
#include <vector>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <tutti/secret.h>

namespace tutti::security {

Digest hmac(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<unsigned char> text;
  for (const auto part : parts) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(part.data());
    text.insert(text.end(), bytes, bytes + part.size());
  }
  Digest digest{};
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(), text.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &length);
  OPENSSL_cleanse(text.data(), text.size());
  return digest;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(std::span<std::byte> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

bool fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace tutti::security
