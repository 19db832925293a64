#include "control/notes.h"

#include <gtest/gtest.h>

#include "transport/message.h"

namespace tutti {
namespace {

const Fingerprint call{
    .kind = CollectiveKind::broadcast, .type = DataType::float32, .root = 3, .on_device = true, .count = 9};

TEST(ControlNotes, ComeBackAsTheyWere) {
  const auto failure = decode_failure(encode(FailureNote{4, Status(Code::aborted, "why", 2)}));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->context, 4u);
  EXPECT_EQ(failure->why.message(), "why");
  EXPECT_EQ(failure->why.peer(), 2);
  const auto made = decode_call(encode(CallNote{4, 77, call}));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->sequence, 77u);
  EXPECT_EQ(made->call, call);
  const auto here = decode_here(encode(HereNote{4, 77, 78}));
  ASSERT_TRUE(here);
  EXPECT_EQ(here->next, 78u);
  EXPECT_EQ(context_of_note(encode(*here)), 4u);
}

TEST(ControlNotes, OfShrinkingNameEachMember) {
  ShrinkNote note;
  note.kind = ShrinkNote::Kind::commit;
  note.context = 5;
  note.number = 6;
  note.place = 65536;
  note.members = {true, false, true, true, false, true, true, true, false, true};
  note.spared = {false, true};
  const auto back = decode_shrink(encode(note));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, note.kind);
  EXPECT_EQ(back->number, note.number);
  EXPECT_EQ(back->place, note.place);
  EXPECT_EQ(back->members, note.members);
  EXPECT_EQ(back->spared, note.spared);
}

TEST(ControlNotes, OfShrinkingMayNameNoPlace) {
  const auto back = decode_shrink(encode(ShrinkNote{}));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->place, std::nullopt);
}

TEST(ControlNotes, ThatAreCutShortAreRefused) {
  ShrinkNote note;
  note.members = {true, true};
  const std::string shrink = encode(note), made = encode(CallNote{4, 77, call});
  for (std::size_t bytes = 0; bytes < shrink.size(); ++bytes)
    EXPECT_FALSE(decode_shrink(shrink.substr(0, bytes))) << bytes;
  for (std::size_t bytes = 0; bytes < made.size(); ++bytes)
    EXPECT_FALSE(decode_call(made.substr(0, bytes))) << bytes;
  EXPECT_FALSE(decode_shrink(shrink + "x"));
}

TEST(ControlNotes, OfShrinkingNameANumberThatACommunicatorCanHave) {
  ShrinkNote note;
  note.number = user_context_bit - 1;
  EXPECT_TRUE(decode_shrink(encode(note)));
  note.number = user_context_bit;
  EXPECT_FALSE(decode_shrink(encode(note)));
}

}  // namespace
}  // namespace tutti
