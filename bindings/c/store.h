#pragma once

#include <memory>
#include <string>

#include <tutti/c.h>
#include <tutti/store.h>

// A `tutti_bytes` holds the result of one of the caller's store functions. The type is opaque in the C
// interface.
struct tutti_bytes {
  std::string value;
};

namespace tutti::c {

// Makes a Store from the caller's functions. Throws `invalid_argument` if one is missing.
std::shared_ptr<Store> make_store(const tutti_store& functions);

}  // namespace tutti::c
