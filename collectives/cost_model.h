#pragma once

namespace tutti {

// What a message and a combination cost on the machine, agreed by all ranks. A message of n bytes keeps the
// sender's and the receiver's port busy for `overhead() + n * beta` and has arrived `alpha + n * beta` after
// it left; combining or copying n bytes takes n * gamma.
struct CostModel {
  double alpha = 20e-6;    // seconds a message
  double beta = 0.4e-9;    // seconds a byte
  double gamma = 0.1e-9;   // seconds a byte
  double signal = 0.3e-6;  // seconds until a rank that shares memory sees another one's signal
  // How much dearer a byte is when all ranks talk to distant ranks at once (shared uplinks, several ranks a
  // host) than when each talks to its neighbour.
  double far = 1.15;

  // The part of alpha during which a port is busy (LogGP's o): a quarter, as the system call and the header
  // take on TCP. It is what keeps an algorithm from sending p small messages at once.
  double overhead() const { return alpha / 4; }
};

}  // namespace tutti
