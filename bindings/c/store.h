#pragma once

#include <memory>
#include <string>

#include <tutti/c.h>
#include <tutti/store.h>

// This structure is an opaque type of the C interface: the result of a function of the caller's store.
struct tutti_bytes {
  std::string value;
};

namespace tutti::c {

// Makes a Store from the caller's functions. Throws `invalid_argument` if one is missing.
std::shared_ptr<Store> make_store(const tutti_store& functions);

}  // namespace tutti::c
