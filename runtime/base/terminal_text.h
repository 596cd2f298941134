// What others wrote, made safe for a terminal: nothing in it acts on the terminal but colours. Pure; how the
// text is cut into calls makes no difference.
//
// Colours are escapes of the form ESC [ digits ; : m. Of UTF-8, well-formed sequences pass, except those of
// the C1 controls (U+0080 to U+009F) and those that change the order in which text is read. What does not
// pass becomes visible ("^G", "\x9b"); erasing the rest of a line (ESC [ K) is left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace fleetrun {

/// Whether a character of UTF-8 does something to a terminal other than to appear: controls of one byte and
/// of two (C1), and what changes the order in which text is read.
bool acts_on_terminal(std::string_view character) noexcept;

class TerminalText {
 public:
  /// Put before what looks like the beginning of a line of fleetrun's own; empty: nothing is.
  struct Mark {
    std::string text;
  };

  /// Lines. Colours end with theirs, and begin again in the next one. A carriage return repaints: what stood
  /// in the line is erased, so that two frames never make a third one.
  explicit TerminalText(Mark mark) : mark_(std::move(mark.text)) {}
  /// One line without its newline: carriage returns are as visible as other controls.
  static TerminalText of_line(Mark mark) {
    TerminalText text(std::move(mark));
    text.is_stream_ = false;
    return text;
  }

  void add(std::string_view part, std::string& out);
  /// Others may write to the terminal now: switches colours off, until more text comes.
  void pause(std::string& out);
  /// Nothing more comes: what is held is shown, and colours are switched off.
  void end(std::string& out);

 private:
  void take(unsigned char byte, std::string& out);
  void start_sequence(unsigned char byte, std::string& out);
  void add_to_sequence(unsigned char byte, std::string& out);
  void end_escape(unsigned char last, std::string& out);
  void give_up(std::string& out);
  void show(std::string_view character, std::string& out);
  void show_visible(unsigned char byte, std::string& out);
  bool may_be_own(std::string_view character, std::string& out);
  void show_candidate(std::string& out);
  void end_line(std::string& out);

  std::string mark_;
  bool is_stream_ = true;
  std::string held_;        // an escape or a character that is not whole yet
  std::size_t wanted_ = 0;  // bytes of the character that is held; 0: an escape is
  std::string colour_;      // escapes that hold for the text to come
  bool is_coloured_ = false, recolours_ = false, returns_ = false, after_word_ = false;
  std::string candidate_;  // letters that may become a line of fleetrun's
};

/// All of `text`.
std::string terminal_text(std::string_view text, std::string_view mark = {});
/// The same where `fd` is a terminal; for pipes and files `text` as it is.
std::string text_for(int fd, std::string_view text);

}  // namespace fleetrun
