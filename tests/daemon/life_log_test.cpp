// What the log says of jobs.
#include "daemon/life_log.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace berth {
namespace {

/// The lines of a logger, without level and time.
class LifeLog : public ::testing::Test {
 protected:
  std::string told(LogLevel level, std::vector<RecordBody> bodies) {
    std::FILE* file = std::tmpfile();
    {
      Logger log{{.level = level, .format = LogFormat::Text, .fd = ::fileno(file), .now = {}}};
      StatusBoard board{Ledger{}};
      Ledger ledger;
      for (RecordBody& body : bodies) {
        Committed committed{.record = {.at = kTimeZero, .wall = 1, .body = std::move(body)},
                            .change = {}};
        const auto change = ledger.apply(committed.record);
        EXPECT_TRUE(change) << change.error().text();
        if (!change) break;
        committed.change = *change;
        board.publish({&committed, 1}, 1);
        log_life(log, committed, board);
      }
    }
    std::rewind(file);
    std::string text;
    char line[1024];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      const std::string whole = line;
      text += whole.substr(whole.find(" job ") + 1);
    }
    std::fclose(file);
    return text;
  }

  static std::vector<RecordBody> life() {
    JobSpec spec;
    spec.user = "ann";
    spec.name = "train";
    spec.gpus = 2;
    const AttemptId attempt{1, 1};
    std::vector<RecordBody> bodies;
    bodies.emplace_back(LifeRecord{.generation = 1});
    bodies.emplace_back(SubmitRecord{.first = 1, .spec = spec});
    bodies.emplace_back(IntentRecord{.job = 1,
                                     .attempt = attempt,
                                     .where = {{.node = "n1", .devices = {0, 3}, .cores = {}}},
                                     .gpus = 2});
    bodies.emplace_back(StartedRecord{.job = 1, .attempt = attempt, .pid = 7});
    bodies.emplace_back(WishRecord{.job = 1, .wish = Wish::Cancel, .by = "ann", .why = "enough"});
    bodies.emplace_back(EndRecord{.job = 1,
                                  .attempt = attempt,
                                  .outcome = Outcome::Cancelled,
                                  .signal = 15,
                                  .run_seconds = 2.5});
    return bodies;
  }
};

TEST_F(LifeLog, ALifeFromItsSubmitToItsEnd) {
  EXPECT_EQ(told(LogLevel::Info, life()),
            "job submitted job=1 count=1 user=ann name=train gpus=2\n"
            "job started job=1 attempt=1.1 devices=n1:0,3 pid=7\n"
            "job cancelled job=1 by=ann why=enough\n"
            "job ended job=1 outcome=cancelled exit=0 signal=15 seconds=2.5 why=\"\"\n");
}

TEST_F(LifeLog, NothingIsSaidWhereNobodyListens) { EXPECT_EQ(told(LogLevel::Warn, life()), ""); }

}  // namespace
}  // namespace berth
