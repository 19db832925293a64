#pragma once

#include <string>

namespace tutti::test {

// A certificate authority in a folder: `NAME.pem` and `NAME.key`, and of each holder that it has signed. By
// the `openssl` command; false if it cannot be run.
bool make_authority(const std::string& folder, const std::string& name);
bool make_certificate(const std::string& folder, const std::string& authority, const std::string& holder);

}  // namespace tutti::test
