// Command templates of containers: what a launch order becomes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/container.h"

namespace berth {
namespace {

using testing::HasSubstr;
using testing::Not;

LaunchOrder order() {
  LaunchOrder all;
  all.job = 7;
  all.attempt = {2, 5};
  all.command = {"python", "it's.py", "$HOME"};
  all.workdir = "/data/ann";
  all.uid = 1000;
  all.env = {{"PATH", "/bin"}, {"MINE", "1"}};
  return all;
}

TEST(Containers, FillTheTemplateAndQuoteEveryWord) {
  LaunchOrder it = order();
  ASSERT_TRUE(put_into_container(
      it, {}, {.image = "img:1", .home = "/home/ann", .devices = {2, 3}, .has_cdi = true}));
  EXPECT_THAT(it.script, HasSubstr("exec 'podman' 'run'"));
  EXPECT_THAT(it.script, HasSubstr("'--name' 'berth-7-2.5'"));
  EXPECT_THAT(it.script, HasSubstr("'--device' 'nvidia.com/gpu=2' '--device' 'nvidia.com/gpu=3'"));
  EXPECT_THAT(it.script, HasSubstr("'--env' 'CUDA_VISIBLE_DEVICES=0,1'"));  // counted anew inside
  EXPECT_THAT(it.script, HasSubstr("'--env' 'MINE'"));
  EXPECT_THAT(it.script, Not(HasSubstr("'--env' 'PATH'")));
  EXPECT_THAT(it.script, HasSubstr("'img:1' 'python' 'it'\\''s.py' '$HOME'\n"));
  EXPECT_THAT(it.script, HasSubstr("''\"$BERTH_TMPDIR\"':'\"$BERTH_TMPDIR\"''"));
  EXPECT_TRUE(it.command.empty());
  EXPECT_THAT(it.cleanup, testing::Contains("berth-7-2.5"));
}

TEST(Containers, AnImageMayNameItsRuntime) {
  LaunchOrder it = order();
  ASSERT_TRUE(put_into_container(it, {}, {.image = "apptainer:a.sif", .home = "", .devices = {}}));
  EXPECT_THAT(it.script, HasSubstr("exec 'apptainer' 'exec'"));
  EXPECT_THAT(it.script, HasSubstr("'a.sif'"));
  EXPECT_TRUE(it.cleanup.empty());
  it = order();
  ASSERT_TRUE(put_into_container(it, {}, {.image = "docker://a/b:1", .home = "", .devices = {}}));
  EXPECT_THAT(it.script, HasSubstr("'docker://a/b:1'"));
  for (const char* wrong : {"", "--privileged", "docker:", "docker:-v"})
    EXPECT_FALSE(put_into_container(it, {}, {.image = wrong, .home = "", .devices = {}})) << wrong;
}

TEST(Containers, TemplatesNeedImageAndCommand) {
  EXPECT_TRUE(template_words("run 'a b' {image} {command}"));
  EXPECT_EQ(template_words("run 'a b' {image} {command}")->at(1), "a b");
  for (const char* wrong : {"", "run {image}", "run {command}", "run 'x {image} {command}"})
    EXPECT_FALSE(template_words(wrong)) << wrong;
}

}  // namespace
}  // namespace berth
