// `berth fit`: measurement tables in, profile files out, and what is said about bad tables.
#include "apps/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <unistd.h>

#include "base/file.h"
#include "lab/fit/measurements.h"
#include "perf/profile_file.h"

namespace berth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// A file that is gone when the test is. Other tests of this program run beside it.
class TempFile {
 public:
  explicit TempFile(const std::string& name)
      : path_(testing::TempDir() + "berth_fit_" + std::to_string(::getpid()) + "_" + name) {}
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Ran {
  Exit exit{};
  std::string out, err;
};
Ran run(const std::string& kind, const std::string& csv, const std::string& out) {
  const TempFile input("in.csv");
  EXPECT_TRUE(write_file(input.path(), csv));
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.exit = execute(FitOptions{.kind = kind, .input = input.path(), .out = out});
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

/// The profile file that a fit wrote.
ProfileSet fitted(const std::string& kind, const std::string& csv) {
  const TempFile output("out.yaml");
  const Ran ran = run(kind, csv, output.path());
  EXPECT_EQ(ran.exit, Exit::Success) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("error %"));
  auto set = load_profiles(output.path());
  if (!set) {
    ADD_FAILURE() << set.error().text();
    return {};
  }
  return std::move(*set);
}

TEST(FitCommand, IterationTimesBecomeAProfile) {
  // t = 0.02 + 0.001 m on a V100, half as fast on a P100.
  const ProfileSet set = fitted("iteration",
                                "model,device,gpus,batch,seconds\n"
                                "net,v100,1,10,0.03\nnet,v100,1,20,0.04\nnet,v100,1,40,0.06\n"
                                "net,P100,1,10,0.06\nnet,P100,1,20,0.08\nnet,P100,1,40,0.12\n");
  const Profile& profile = set[*set.find("net")];
  EXPECT_NEAR(profile.iteration.alpha, 0.02, 1e-6);
  EXPECT_NEAR(profile.iteration.beta, 0.001, 1e-7);
  ASSERT_EQ(profile.speeds.size(), 1U);
  EXPECT_NEAR(profile.speeds[0].second, 0.5, 1e-5);
  ASSERT_EQ(profile.sources.size(), 1U);
  EXPECT_EQ(profile.sources[0].provenance, Provenance::Fitted);
}

TEST(FitCommand, AKnownModelKeepsItsOtherParts) {
  const ProfileSet set = fitted("memory", "model,batch,mib\nresnet50,32,4000\nresnet50,64,5000\n");
  const Profile& before = built_in_profiles()[*built_in_profiles().find("resnet-50")];
  const Profile& after = set[*set.find("resnet-50")];
  EXPECT_NEAR(after.memory.fixed_mib, 3000, 1e-3);
  EXPECT_NEAR(after.memory.per_sample_mib, 31.25, 1e-5);
  EXPECT_NEAR(after.iteration.alpha, before.iteration.alpha, 1e-6);
  EXPECT_EQ(set.size(), built_in_profiles().size());
}

TEST(FitCommand, PairsBecomeATable) {
  const ProfileSet set = fitted("pairs", "of,beside,slowdown\nnew,bert,1.5\nbert,new,0.8\n");
  EXPECT_NEAR(set.slowdown(*set.find("new"), *set.find("bert")), 1.5, 1e-9);
  EXPECT_EQ(set.slowdown(*set.find("bert"), *set.find("new")), 1);
}

TEST(FitCommand, CoresBecomeACurve) {
  const ProfileSet set = fitted("cpu",
                                "model,cores,speed\n"
                                "net,1,5\nnet,2,38\nnet,4,75\nnet,8,123\nnet,16,160\nnet,20,158\n");
  const CpuCurve& curve = set[*set.find("net")].cpu;
  EXPECT_NEAR(curve.log_gain, 39.6741, 1e-3);  // the worked example of the CPU model
  EXPECT_NEAR(curve.linear_gain, 5.0588, 1e-3);
  EXPECT_EQ(curve.theta, 12);
}

TEST(FitCommand, SlowdownsBecomeAGradient) {
  const ProfileSet set =
      fitted("locality", "model,gpus,nodes,relative_speed\nnet,4,2,0.9\nnet,8,4,0.88\n");
  EXPECT_GT(set[*set.find("net")].iteration.gradient_bytes, 1e6);
}

TEST(FitCommand, BadInputIsMisuseAndNothingIsWritten) {
  const TempFile output("never.yaml");
  const Ran ran = run("iteration",
                      "model,device,gpus,batch,seconds\n"
                      "net,v100,1,32,-0.5\n"
                      "net,v9000,1,32,0.5\n"
                      "net,v100,4,32,0.5\n",
                      output.path());
  EXPECT_EQ(ran.exit, Exit::Misuse);
  EXPECT_THAT(ran.err, HasSubstr("in.csv:2:5: seconds must be a number"));
  EXPECT_THAT(ran.err, HasSubstr("in.csv:3:2: no device type is called 'v9000'"));
  EXPECT_THAT(ran.err, HasSubstr("in.csv:4:3: a gang of several GPUs needs level or nodes"));
  EXPECT_FALSE(std::filesystem::exists(output.path()));
}

TEST(FitCommand, UnknownKindsAndFilesAreMisuse) {
  EXPECT_THAT(run("iterations", "", "").err, HasSubstr("did you mean iteration"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(execute(FitOptions{.kind = "cpu", .input = "no/such.csv"}), Exit::Misuse);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no/such.csv"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(execute(FitOptions{.kind = "catalogue", .input = "no/such"}), Exit::Misuse);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no/such/gavel"));
}

template <class Read>
std::vector<std::string> faults(const std::string& csv, Read read) {
  const auto table = Table::parse(csv, "t.csv");
  if (!table) return table.error().messages;
  const auto points = read(*table);
  return points ? std::vector<std::string>{"(read without complaint)"} : points.error().messages;
}

TEST(MeasurementFaults, EachKindIsNamed) {
  EXPECT_THAT(faults("", read_steps), ElementsAre(HasSubstr("t.csv:1:1: the file is empty")));
  EXPECT_THAT(faults("model,batch,mib\n", read_memory),
              ElementsAre(HasSubstr("no measurements below the header")));
  EXPECT_THAT(faults("model,batch\na,1\n", read_memory),
              ElementsAre(HasSubstr("the column 'mib' is missing")));
  EXPECT_THAT(faults("model,batch,mib,size\na,1,2,3\n", read_memory),
              ElementsAre(HasSubstr("no column is called 'size'")));
  EXPECT_THAT(faults("model,batch,mib\na,1\n", read_memory),
              ElementsAre(StartsWith("t.csv:2:1: 2 fields where the header has 3")));
  EXPECT_THAT(faults("model,batch,mib\n,nan,0\n", read_memory),
              ElementsAre(StartsWith("t.csv:2:1: model is empty"),
                          StartsWith("t.csv:2:2: batch must be a number"),
                          StartsWith("t.csv:2:3: mib must be a number")));
  EXPECT_THAT(faults("of,beside,slowdown\na,b,-1\n", read_pairs),
              ElementsAre(StartsWith("t.csv:2:3: slowdown must be")));
  EXPECT_THAT(faults("model,cores,speed\na,0,1\na,1,inf\n", read_cpu),
              ElementsAre(StartsWith("t.csv:2:2: cores"), StartsWith("t.csv:3:3: speed")));
  EXPECT_THAT(faults("model,gpus,level,relative_speed\na,1,rack,1\na,2,rock,1\n", read_locality),
              ElementsAre(StartsWith("t.csv:2:2: gpus must be a number from 2"),
                          HasSubstr("t.csv:3:3: no level is called 'rock' (did you mean rack")));
  EXPECT_THAT(faults("model,device,gpus,batch,seconds\na,v100,1.5,8,1\n", read_steps),
              ElementsAre(StartsWith("t.csv:2:3: gpus must be a whole number")));
}

}  // namespace
}  // namespace berth
