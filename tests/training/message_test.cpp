#include "training/message.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace berth {
namespace {

TEST(TrainingMessage, ReadsAReport) {
  const auto message = parse_from_code(
      R"({"type":"report","iteration":120,"epoch":1.5,"loss":0.25,"seconds":2,"batch":32,)"
      R"("sub_steps":2,"metrics":{"accuracy":0.9},"from a later version":[1]})");
  ASSERT_TRUE(message.has_value());
  const auto& report = std::get<Report>(*message);
  EXPECT_EQ(report.iteration, 120);
  EXPECT_EQ(report.epoch, 1.5);
  EXPECT_EQ(report.loss, 0.25);
  EXPECT_EQ(report.batch, 32);
  EXPECT_EQ(report.sub_steps, 2);
  EXPECT_EQ(report.metrics.at("accuracy"), 0.9);
  EXPECT_FALSE(report.noise_scale.has_value());
}

TEST(TrainingMessage, ALossThatIsNoNumberIsAbsent) {
  const auto message = parse_from_code(R"({"type":"report","iteration":1,"loss":null})");
  ASSERT_TRUE(message.has_value());
  EXPECT_FALSE(std::get<Report>(*message).loss.has_value());
}

TEST(TrainingMessage, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "not JSON"},
      {"{", "not JSON"},
      {"[1]", "not a JSON object"},
      {"{}", "type is missing"},
      {R"({"type":"dance"})", "type 'dance' is not known"},
      {R"({"type":"report"})", "iteration is missing"},
      {R"({"type":"report","iteration":-1})", "iteration is not a whole number in range"},
      {R"({"type":"report","iteration":18446744073709551615})",
       "iteration is not a whole number in range"},
      {R"({"type":"report","iteration":1,"loss":"low"})", "loss is not a finite number"},
      {R"({"type":"report","iteration":1,"loss":1e999})", "not JSON"},
      {R"({"type":"report","iteration":1,"seconds":-1})", "seconds is below zero"},
      {R"({"type":"report","iteration":1,"metrics":[1]})",
       "metrics is not an object of at most 32 numbers"},
      {R"({"type":"hello","job":1})", "v is missing"},
      {R"({"type":5})", "type is missing"},
  };
  for (const auto& [line, why] : cases) {
    const auto message = parse_from_code(line);
    ASSERT_FALSE(message.has_value()) << line;
    EXPECT_EQ(message.error().text(), why) << line;
  }
}

TEST(TrainingMessage, SurvivesDepthAndBytes) {
  EXPECT_FALSE(parse_from_code(std::string(16'000, '[')).has_value());
  EXPECT_FALSE(parse_from_code("{\"type\":\"\xff\xfe\"}").has_value());
  EXPECT_NO_THROW(static_cast<void>(error_line("bytes \xff\xfe of a peer")));
}

TEST(TrainingMessage, TellsTermsThatAreSet) {
  const auto json = nlohmann::json::parse(terms_line({.sub_steps = 4, .cores_milli = 1500}));
  EXPECT_EQ(json, (nlohmann::json{{"type", "terms"}, {"sub_steps", 4}, {"cores", 1.5}}));
  EXPECT_EQ(nlohmann::json::parse(terms_line({.memory_limit_mib = 300})),
            (nlohmann::json{{"type", "terms"}, {"sub_steps", 1}, {"memory_mib", 300}}));
}

}  // namespace
}  // namespace berth
