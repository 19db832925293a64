#include "tests/unit/collectives/member_world.h"

#include <chrono>
#include <numeric>

namespace tutti::test {

namespace {

std::vector<int> first_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

MeshOptions mesh_of(int size, int rank) {
  MeshOptions options;
  options.rank = rank;
  options.peers.resize(static_cast<std::size_t>(size));
  for (const int peer : first_ranks(size)) {
    options.peers[static_cast<std::size_t>(peer)].rank = peer;
    options.peers[static_cast<std::size_t>(peer)].host = "test";
  }
  return options;
}

}  // namespace

MemberWorld::MemberWorld(int size, int rank, bool talks)
    : engine(std::make_shared<Engine>(DriverOptions{.background = false})),
      driver(engine->driver),
      mesh(driver, mesh_of(size, rank)),
      desk(driver, mesh),
      members(mesh, Topology(std::vector<int>(static_cast<std::size_t>(size))), first_ranks(size)),
      failure(rank, members.describe_this_rank(), *this),
      live(engine, members, journal, std::chrono::seconds(60), member),
      shared(members, failure),
      gate(driver, active, failure, journal, live, shared),
      parts{context, Composite::none, members, mesh, failure, journal, live, shared, gate} {
  if (talks) desk.start(std::make_unique<PaperPlane>(letters));
}

MemberWorld::~MemberWorld() {
  gate.settle();
  end_operations(Status(Code::aborted, "the test is over"));
  desk.stop();
  mesh.shutdown(Deadline::after(std::chrono::seconds(10)));
}

Operation& MemberWorld::make(const Fingerprint& call, const CallOptions& options) {
  Operation& operation = *live.make(*this, Operation::Kind::collective, call, options);
  operation.sequence = journal.number_collective();
  return operation;
}

Operation& MemberWorld::begin(const Fingerprint& call, const CallOptions& options) {
  Operation& operation = make(call, options);
  live.begin(operation);
  return operation;
}

void MemberWorld::end_operations(const Status& why) { live.cancel_all(why); }

}  // namespace tutti::test
