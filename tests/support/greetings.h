#pragma once

#include <random>
#include <string>
#include <vector>

namespace tutti::test {

// Returns first messages that other programs may send to one of tutti's ports: text of known
// protocols, and random bytes.
inline std::vector<std::string> greetings_of_others() {
  std::mt19937 random(3);
  std::vector<std::string> greetings = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // a TLS hello
      "SSH-2.0-OpenSSH_9.2\r\n", std::string(100'000, 'A')};
  for (int i = 0; i < 40; ++i) {
    std::string bytes(1 + random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    greetings.push_back(bytes);
  }
  return greetings;
}

}  // namespace tutti::test
