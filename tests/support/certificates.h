#pragma once

#include <string>

namespace tutti::test {

// `make_authority` makes a certificate authority in a folder, as `NAME.pem` and `NAME.key`.
// `make_certificate` makes the same two files for a holder, with a certificate that the authority signs. Both
// functions use the `openssl` command, and return false if it fails.
bool make_authority(const std::string& folder, const std::string& name);
bool make_certificate(const std::string& folder, const std::string& authority, const std::string& holder);

}  // namespace tutti::test
