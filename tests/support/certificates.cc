#include "tests/support/certificates.h"

#include <cstdlib>

namespace tutti::test {
namespace {

std::string new_key(const std::string& folder, const std::string& name) {
  return "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" + name +
         " -keyout " + folder + "/" + name + ".key -out " + folder + "/" + name + ".pem";
}

}  // namespace

bool make_authority(const std::string& folder, const std::string& name) {
  return std::system((new_key(folder, name) + " >/dev/null 2>&1").c_str()) == 0;
}

bool make_certificate(const std::string& folder, const std::string& authority, const std::string& holder) {
  const std::string signer = folder + "/" + authority;
  return std::system(
             (new_key(folder, holder) + " -CA " + signer + ".pem -CAkey " + signer + ".key >/dev/null 2>&1")
                 .c_str()) == 0;
}

}  // namespace tutti::test
