#pragma once

#include <chrono>
#include <string>

#include <tutti/status.h>

namespace tutti::meeting {

// `Incoming` is a rank's answer to a peer that has connected to it.
enum class Incoming {
  welcome,    // the peer's connection will be used; this rank gives up its own attempt
  wait,       // this rank's own connection is on its way, and will be used
  connected,  // there is a connection already
  gone,       // this rank has closed, or has given the peer up
};

// `OwnSide` is the state of this rank's side when the peer connects.
struct OwnSide {
  bool gone = false;
  bool connected = false;
  bool connecting = false;  // this rank's own attempt is under way, so the peer may still accept it
};

// Decides which connection survives if two ranks connect to each other at the same time: the one that the
// lower rank makes. The higher rank welcomes that connection and gives up its own attempt. The lower rank
// refuses the higher rank's connection as long as its own attempt can still succeed.
constexpr Incoming judge_incoming(int self, int peer, const OwnSide& own) {
  if (own.gone) return Incoming::gone;
  if (own.connected) return Incoming::connected;
  return self < peer && own.connecting ? Incoming::wait : Incoming::welcome;
}

// A rank whose connection was answered with `wait` makes its next attempt after this pause, if the peer's own
// connection has not arrived by then.
inline constexpr std::chrono::milliseconds pause_for_theirs{100};

// Returns why a rank refuses a connection for which the verdict is `connected` or `gone`. `self` describes
// the rank that refuses.
inline Status refusal(Incoming verdict, const std::string& self) {
  return Status(Code::peer_lost,
                self + (verdict == Incoming::connected ? " has a connection with another process of that rank"
                                                       : " has left, or has given up this rank"));
}

}  // namespace tutti::meeting
