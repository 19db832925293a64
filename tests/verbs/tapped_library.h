#pragma once

#include <functional>
#include <map>
#include <mutex>

#include "tests/verbs/tested_library.h"

namespace tutti::test {

// `TappedLibrary` is the library under test (`TestedLibrary`). It shows each request to send to a function of
// the test, before the device gets the request. Only one exists at a time. Any thread may call it.
class TappedLibrary {
 public:
  using Tap = std::function<void(ibv_qp& pair, const ibv_send_wr& request)>;

  explicit TappedLibrary(Tap tap);
  ~TappedLibrary();
  TappedLibrary(const TappedLibrary&) = delete;
  TappedLibrary& operator=(const TappedLibrary&) = delete;

  // Returns the functions of the library under test, which show nothing.
  const verbs::Functions& untapped() const { return library_.functions(); }
  // Returns the functions that a test may replace before it passes them to a transport.
  verbs::Functions& functions() { return functions_; }
  // Posts a request without showing it. Returns what `ibv_post_send` returns.
  int post(ibv_qp* pair, ibv_send_wr* request, ibv_send_wr** failed);

 private:
  static inline TappedLibrary* current = nullptr;

  const Tap tap_;
  TestedLibrary library_;
  verbs::Functions functions_;
  std::mutex mutex_;  // guards `posts_`
  std::map<ibv_context*, decltype(ibv_context_ops::post_send)> posts_;
};

}  // namespace tutti::test
