// Every record reads back as it was written; what a newer version adds is ignored, what cannot be
// understood is an error that says where.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "store/record.h"
#include "support/random_history.h"

namespace berth {
namespace {

using test::RandomHistory;

TEST(Record, ReadsBackAsItWasWritten) {
  std::array<int, std::variant_size_v<RecordBody>> seen{};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomHistory history(seed);
    Ledger ledger;
    for (int i = 0; i < 150; ++i) {
      const Record record = history.next(ledger);
      ASSERT_TRUE(ledger.apply(record));
      const std::string text = encode(record.body);
      const auto back = decode(kind_of(record.body), text);
      ASSERT_TRUE(back) << back.error().text();
      ASSERT_EQ(back->index(), record.body.index());
      ASSERT_EQ(encode(*back), text);
      ++seen[back->index()];
    }
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {  // because each kind was tried
    if (i == RecordBody{EngineRecord{}}.index()) continue;
    EXPECT_GT(seen[i], 10) << i;
  }
}

TEST(Record, KeepsAnyBytesOfAPass) {
  EngineRecord pass{.begins = true};
  for (int byte = 0; byte < 256; ++byte) pass.bytes += static_cast<char>(byte);
  const auto back = decode("engine", encode(pass));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<EngineRecord>(*back).bytes, pass.bytes);
  EXPECT_TRUE(std::get<EngineRecord>(*back).begins);
}

TEST(Record, KeepsExtremeValues) {
  const EndRecord end{.job = ~JobNumber{0},
                      .attempt = {~std::uint64_t{0}, 1},
                      .outcome = Outcome::NodeFailed,
                      .is_final = false,
                      .exit_code = -1,
                      .signal = 9,
                      .gpu_seconds = 0.1 + 0.2,
                      .run_seconds = 5e-324,
                      .why = "line\nbreak \"quoted\" \xe2\x82\xac"};
  const auto back = decode("end", encode(end));
  ASSERT_TRUE(back) << back.error().text();
  const auto& got = std::get<EndRecord>(*back);
  EXPECT_EQ(got.job, end.job);
  EXPECT_EQ(got.attempt, end.attempt);
  EXPECT_EQ(got.outcome, end.outcome);
  EXPECT_EQ(got.is_final, end.is_final);
  EXPECT_EQ(got.gpu_seconds, end.gpu_seconds);
  EXPECT_EQ(got.run_seconds, end.run_seconds);
  EXPECT_EQ(got.why, end.why);
}

TEST(Record, KeepsTheWholeSpec) {
  SubmitRecord submit{.first = 7, .spec = {}};
  submit.spec.script = "#!/bin/sh\necho hello\n";
  submit.spec.dependencies = {{DependencyKind::AfterAny, 3}, {DependencyKind::AfterAny, 4}};
  submit.spec.any_dependency = true;
  submit.spec.array = ArraySpec{{0, 3, 6, 20}, 2};
  submit.spec.requeue_exit_code = 75;
  submit.spec.weight = 1.0 / 3;
  const auto back = decode("submit", encode(submit));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(std::get<SubmitRecord>(*back).spec, submit.spec);
}

TEST(Record, IgnoresWhatANewerVersionAdds) {
  const auto wish = decode("wish", R"({"job":3,"wish":"hold","colour":"blue"})");
  ASSERT_TRUE(wish) << wish.error().text();
  EXPECT_EQ(std::get<WishRecord>(*wish).wish, Wish::Hold);
  const auto submit = decode("submit", R"({"first":1,"spec":{"gpus":2,"colour":"blue"}})");
  ASSERT_TRUE(submit) << submit.error().text();
  EXPECT_EQ(std::get<SubmitRecord>(*submit).spec.gpus, 2);
}

TEST(Record, SaysWhatIsWrong) {
  const auto message = [](std::string_view kind, std::string_view json) {
    const auto body = decode(kind, json);
    return body ? std::string("accepted") : body.error().text();
  };
  EXPECT_EQ(message("dream", "{}"), "unknown kind of record 'dream' (written by a newer version?)");
  EXPECT_EQ(message("wish", "[]"), "a record 'wish' is no JSON object");
  EXPECT_EQ(message("wish", "{"), "a record 'wish' is no JSON object");
  EXPECT_EQ(message("wish", R"({"job":-1,"wish":"sing"})"),
            "record 'wish': job: a whole number in range expected\n"
            "record 'wish': wish: an unknown word");
  EXPECT_EQ(message("intent", R"({"job":1,"attempt":"3"})"),
            "record 'intent': attempt: an unknown word");
  EXPECT_EQ(message("intent", R"({"job":1,"attempt":"3.1","where":[{"devices":[0]}]})"),
            "record 'intent': where: a node without a name");
  EXPECT_EQ(message("end", R"({"job":1,"outcome":"failed"})"),
            "record 'end': is_final: is missing");
  EXPECT_EQ(message("started", R"({"job":1,"attempt":"3.1","pid":99999999999999999999})"),
            "record 'started': pid: a whole number in range expected");
}

TEST(Record, BytesThatAreNoTextBecomeReadable) {
  const auto back = decode("wish", encode(WishRecord{1, Wish::Hold, "u", "bad \xff byte"}));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(std::get<WishRecord>(*back).why, "bad \xef\xbf\xbd byte");
}

TEST(AttemptId, IsTextWithADot) {
  EXPECT_EQ(to_text(AttemptId{3, 17}), "3.17");
  EXPECT_EQ(attempt_from("3.17"), (AttemptId{3, 17}));
  for (const char* wrong : {"", "3", "3.", ".17", "3.17.1", "-3.1", "3.x", " 3.1"})
    EXPECT_FALSE(attempt_from(wrong)) << wrong;
}

}  // namespace
}  // namespace berth
