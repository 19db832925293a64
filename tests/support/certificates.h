#pragma once

#include <string>

namespace tutti::test {

// `make_authority` makes a certificate authority in a folder, as `NAME.pem` and `NAME.key`.
// `make_certificate` makes a certificate for a holder, signed by `authority`, as `HOLDER.pem` and
// `HOLDER.key`. Both functions use the `openssl` command, and return false if it fails.
bool make_authority(const std::string& folder, const std::string& name);
bool make_certificate(const std::string& folder, const std::string& authority, const std::string& holder);

}  // namespace tutti::test
