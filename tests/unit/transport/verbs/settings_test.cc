// Tests the settings for devices: the lists of devices, TUTTI_IB_* and NCCL_IB_*.
#include "transport/verbs/settings.h"

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "transport/verbs/port_filter.h"

namespace tutti::verbs {
namespace {

bool takes(const char* text, const char* device, std::uint8_t port) {
  const Result<PortFilter> filter = PortFilter::parse(text, "TUTTI_IB_HCA");
  EXPECT_TRUE(filter.ok()) << text;
  return filter.ok() && filter->takes(device, port);
}

TEST(VerbsPortFilter, TakesEverythingWithoutAList) {
  EXPECT_TRUE(PortFilter().takes("mlx5_0", 1));
  EXPECT_TRUE(PortFilter().takes("rxe0", 2));
}

TEST(VerbsPortFilter, ComparesPrefixesNamesAndPorts) {
  EXPECT_TRUE(takes("mlx5", "mlx5_10", 2));
  EXPECT_FALSE(takes("mlx5", "rxe0", 1));
  EXPECT_TRUE(takes("mlx5_1", "mlx5_10", 1));
  EXPECT_FALSE(takes("=mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(takes("=mlx5_1,mlx5_10", "mlx5_10", 1));
  EXPECT_TRUE(takes("mlx5_0:1,rxe:2", "mlx5_0", 1));
  EXPECT_FALSE(takes("mlx5_0:1,rxe:2", "mlx5_0", 2));
  EXPECT_TRUE(takes("mlx5_0:1, rxe:2", "rxe1", 2));
}

TEST(VerbsPortFilter, Excludes) {
  EXPECT_FALSE(takes("^mlx5", "mlx5_3", 1));
  EXPECT_TRUE(takes("^mlx5", "rxe0", 1));
  EXPECT_TRUE(takes("^=mlx5_1", "mlx5_10", 1));
  EXPECT_FALSE(takes("^=mlx5_1", "mlx5_1", 2));
  EXPECT_TRUE(takes("^mlx5_1:2", "mlx5_1", 1));
  EXPECT_FALSE(takes("^mlx5_1:2", "mlx5_1", 2));
}

TEST(VerbsPortFilter, RefusesWhatIsNotAList) {
  for (const char* text : {"", "^", "=", "^=", ",", ":1", "mlx5_0:", "mlx5_0:0", "mlx5_0:256", "mlx5_0:x"}) {
    const Result<PortFilter> filter = PortFilter::parse(text, "NCCL_IB_HCA");
    ASSERT_FALSE(filter.ok()) << text;
    EXPECT_EQ(filter.status().code(), Code::invalid_argument);
    EXPECT_NE(filter.status().message().find("NCCL_IB_HCA is '" + std::string(text) + "'"),
              std::string::npos);
  }
}

class VerbsSettings : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const auto& [name, value] : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    set_[name] = value;
    setenv(name.c_str(), value.c_str(), 1);
  }
  static Settings with(const std::map<std::string, std::string>& values) {
    return settings_from(Config::from_values(values).take());
  }

 private:
  std::map<std::string, std::string> set_;
};

TEST_F(VerbsSettings, HaveDefaults) {
  const Settings settings = with({});
  EXPECT_EQ(settings.devices, "");
  EXPECT_FALSE(settings.gid_index);
  EXPECT_EQ(settings.traffic_class, 0);
  EXPECT_EQ(settings.service_level, 0);
  EXPECT_EQ(settings.timeout, 20);
  EXPECT_EQ(settings.retries, 7);
}

TEST_F(VerbsSettings, ComeFromNcclWhereOursAreNotSet) {
  set("NCCL_IB_HCA", "=mlx5_2");
  set("NCCL_IB_GID_INDEX", "3");
  set("NCCL_IB_TC", "106");
  set("NCCL_IB_SL", "3");
  set("NCCL_IB_TIMEOUT", "22");
  set("NCCL_IB_RETRY_CNT", "5");
  Settings settings = with({});
  EXPECT_EQ(settings.devices, "=mlx5_2");
  EXPECT_EQ(settings.devices_variable, "NCCL_IB_HCA");
  EXPECT_EQ(settings.gid_index, 3);
  EXPECT_EQ(settings.traffic_class, 106);
  EXPECT_EQ(settings.service_level, 3);
  EXPECT_EQ(settings.timeout, 22);
  EXPECT_EQ(settings.retries, 5);

  settings = with({{"TUTTI_IB_HCA", "rxe0"},
                   {"TUTTI_IB_GID_INDEX", "1"},
                   {"TUTTI_IB_TC", "0"},
                   {"TUTTI_IB_SL", "1"},
                   {"TUTTI_IB_TIMEOUT", "18"},
                   {"TUTTI_IB_RETRY_CNT", "0"}});
  EXPECT_EQ(settings.devices, "rxe0");
  EXPECT_EQ(settings.devices_variable, "TUTTI_IB_HCA");
  EXPECT_EQ(settings.gid_index, 1);
  EXPECT_EQ(settings.traffic_class, 0);
  EXPECT_EQ(settings.service_level, 1);
  EXPECT_EQ(settings.timeout, 18);
  EXPECT_EQ(settings.retries, 0);
}

TEST_F(VerbsSettings, IgnoreNonsenseOfNccl) {
  set("NCCL_IB_GID_INDEX", "-1");
  set("NCCL_IB_TIMEOUT", "0");  // a device would wait forever
  set("NCCL_IB_RETRY_CNT", "often");
  const Settings settings = with({});
  EXPECT_FALSE(settings.gid_index);
  EXPECT_EQ(settings.timeout, 20);
  EXPECT_EQ(settings.retries, 7);
}

}  // namespace
}  // namespace tutti::verbs
