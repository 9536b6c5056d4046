// A reader's buffer of events without sockets.
#include <gtest/gtest.h>

#include "api/event_stream.h"
#include "support/fake_service.h"

namespace berth::api {
namespace {

using Because = BodySource::Because;

TEST(EventStream, WakesItsReaderOnceUntilItLooks) {
  testing::FakeService service;
  EventStream stream(service, {});
  int woken = 0;
  stream.start([&] { ++woken; });
  EXPECT_EQ(stream.next(Because::Woken).bytes, "retry: 2000\n\n");
  for (int i = 0; i < 3; ++i) service.happen("job", 1, "a", "1");
  EXPECT_EQ(woken, 1);
  EXPECT_NE(stream.next(Because::Woken).bytes.find("id: 3\n"), std::string::npos);
  EXPECT_EQ(stream.next(Because::Woken).bytes, "");
  EXPECT_EQ(stream.next(Because::Idle).bytes, ":\n\n");
  service.happen("job", 1, "a", "1");
  EXPECT_EQ(woken, 2);
}

TEST(EventStream, EndsWithWhatFittedWhenItIsFull) {
  testing::FakeService service;
  EventStream stream(service, {.max_bytes = 200});
  stream.start([] {});
  for (int i = 0; i < 100; ++i) service.happen("job", 1, "a", "0123456789");
  const auto piece = stream.next(Because::Woken);
  EXPECT_TRUE(piece.is_last);
  EXPECT_NE(piece.bytes.find("id: 1\n"), std::string::npos);
  EXPECT_TRUE(piece.bytes.ends_with("event: overflow\ndata: {}\n\n"));
  EXPECT_LT(piece.bytes.size(), 250U);
}

TEST(EventStream, LeavesTheServiceWhenItGoes) {
  testing::FakeService service;
  {
    EventStream stream(service, {});
    stream.start([] {});
    EXPECT_EQ(service.subscribers(), 1U);
  }
  EXPECT_EQ(service.subscribers(), 0U);
}

}  // namespace
}  // namespace berth::api
