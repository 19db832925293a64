#pragma once

#include <functional>
#include <string>

#include <tutti/credentials.h>

namespace tutti::tcp {

// `StoreClientOptions` are the options for a new `StoreClient`.
struct StoreClientOptions {
  std::string nonce = {};  // if not empty, the nonce that the server must have
  security::SharedCredentials credentials = {};
  int rank = -1;  // this process's rank, or -1 if this process is not a rank
  // Called repeatedly while the client connects, or waits for the server. If it returns true, the attempt to
  // connect, or the call, fails with `aborted`.
  std::function<bool()> interrupted = {};
};

}  // namespace tutti::tcp
