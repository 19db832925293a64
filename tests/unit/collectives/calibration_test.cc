#include "collectives/schedule/calibration.h"

#include <limits>
#include <mutex>

#include <gtest/gtest.h>

#include "tests/support/cluster.h"

namespace tutti {
namespace {

// Lets a cluster of threads agree on costs. Returns the resulting costs of each rank. The topology
// places rank i on host `hosts[i]`.
std::vector<CostModel> agreed(const std::string& transport, const std::vector<int>& hosts,
                              const CostModel& shipped, bool measuring) {
  test::Cluster cluster(static_cast<int>(hosts.size()), {.transport = transport});
  const Topology topology(hosts);
  std::vector<CostModel> models(hosts.size());
  cluster.run([&](Communicator& communicator) {
    CostModel own = shipped;
    // Each rank has a different number of cores. The result must depend on rank 0's number only.
    own.cores += communicator.rank();
    models[static_cast<std::size_t>(communicator.rank())] =
        agree_on_costs(communicator, topology, own, measuring);
  });
  return models;
}

TEST(Calibration, AllRanksAgree) {
  for (const std::string transport : {"inproc", "tcp"}) {
    for (const std::vector<int>& hosts :
         {std::vector<int>{0, 0}, {0, 1}, {0, 0, 0}, {0, 1, 1, 0, 2}, {0, 1, 2, 2}}) {
      const CostModel shipped = shipped_model("tcp");
      const std::vector<CostModel> models = agreed(transport, hosts, shipped, true);
      for (const CostModel& model : models) EXPECT_EQ(model, models.front());
      EXPECT_EQ(models.front().cores, shipped.cores);
      EXPECT_GT(models.front().gamma, 0);
      if (Topology(hosts).hosts() == 1) {
        EXPECT_EQ(models.front().far, shipped.far);
      }
      if (Topology(hosts).most() == 1) {
        EXPECT_EQ(models.front().near, shipped.near);
      }
    }
  }
}

TEST(Calibration, WithoutMeasuringTheShippedCostsAreAgreedOn) {
  const CostModel shipped = shipped_model("shm");
  for (const CostModel& model : agreed("inproc", {0, 0, 1}, shipped, false)) EXPECT_EQ(model, shipped);
}

TEST(Calibration, AbsurdFiguresAreNotBelieved) {
  const LinkCost shipped = shipped_model("tcp").near;
  EXPECT_EQ(plausible(shipped, {}, 20), shipped);
  for (const double absurd : {0.0, -1e-6, 4e-3, 1e3, std::numeric_limits<double>::quiet_NaN()}) {
    LinkCost measured = shipped;
    measured.alpha = absurd;
    EXPECT_EQ(plausible(measured, shipped, 20), shipped) << absurd;
    measured = shipped;
    measured.beta = absurd;
    EXPECT_EQ(plausible(measured, shipped, 20), shipped) << absurd;
  }
  LinkCost measured = shipped;
  measured.gap = measured.busy = measured.busy_byte = measured.handshake = -1;
  const LinkCost kept = plausible(measured, {}, 20);
  EXPECT_EQ(kept.alpha, shipped.alpha);
  EXPECT_GT(kept.gap, 0);
  EXPECT_GT(kept.busy, 0);
  EXPECT_GT(kept.busy_byte, 0);
  EXPECT_EQ(kept.handshake, 0);
  measured.gap = measured.busy = measured.busy_byte = measured.handshake =
      std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(plausible(measured, {}, 20), kept);
}

// All ranks use the costs that rank 0 announces. A rank refuses impossible costs with an error that
// names rank 0.
TEST(Calibration, RankZeroIsNotBelievedEverything) {
  const CostModel usual = shipped_model("tcp");
  std::vector<CostModel> absurd;
  for (const double figure :
       {-1e-6, 1e9, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    for (double LinkCost::*const member : {&LinkCost::alpha, &LinkCost::gap, &LinkCost::beta, &LinkCost::busy,
                                           &LinkCost::busy_byte, &LinkCost::handshake}) {
      absurd.insert(absurd.end(), 2, usual);
      absurd.back().near.*member = figure;
      absurd[absurd.size() - 2].far.*member = figure;
    }
    for (double CostModel::*const member : {&CostModel::gamma, &CostModel::signal, &CostModel::congestion}) {
      absurd.push_back(usual);
      absurd.back().*member = figure;
    }
  }
  for (const int cores : {-1, std::numeric_limits<int>::min(), std::numeric_limits<int>::max() - 1}) {
    absurd.push_back(usual);
    absurd.back().cores = cores;
  }
  for (const int hosts : {0, -1, std::numeric_limits<int>::max()}) {
    absurd.push_back(usual);
    absurd.back().hosts_per_machine = hosts;
  }
  const Topology topology(std::vector<int>{0, 0});
  test::Cluster cluster(2, {.transport = "inproc"});
  cluster.run([&](Communicator& communicator) {
    for (const CostModel& model : absurd) {
      try {
        agree_on_costs(communicator, topology, communicator.rank() == 0 ? model : usual, false);
        ADD_FAILURE() << describe(model);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::protocol_error);
        EXPECT_EQ(error.status().peer(), 0);
      }
    }
    EXPECT_EQ(agree_on_costs(communicator, topology, usual, false), usual);
  });
}

}  // namespace
}  // namespace tutti
