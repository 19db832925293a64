#pragma once

#include <string>

namespace tutti::test {

// Makes a certificate authority in a folder, as `NAME.pem` and `NAME.key`, and the same two files for each
// holder whose certificate it has signed. Uses the `openssl` command; returns false if that cannot be run.
bool make_authority(const std::string& folder, const std::string& name);
bool make_certificate(const std::string& folder, const std::string& authority, const std::string& holder);

}  // namespace tutti::test
