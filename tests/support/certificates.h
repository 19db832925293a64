#pragma once

#include <string>

namespace tutti::test {

// `make_authority` makes a certificate authority in a folder: the certificate `NAME.pem` and the key
// `NAME.key`. `make_certificate` makes a certificate `HOLDER.pem` and its key `HOLDER.key`, and `authority`
// signs the certificate. Both functions use the `openssl` command, and return false if it fails.
bool make_authority(const std::string& folder, const std::string& name);
bool make_certificate(const std::string& folder, const std::string& authority, const std::string& holder);

}  // namespace tutti::test
