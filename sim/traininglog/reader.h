/* reader.h -- bytes to lines: ends of lines (LF, CR, CRLF) and colours go, NUL bytes too, so that
 * UTF-16 becomes readable; what is beyond LOG_WIDTH bytes of a line is left out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* LOG_ENDLESS bytes without the end of a line are no text. */
enum { LOG_WIDTH = 8192, LOG_ENDLESS = 1 << 28 };

typedef struct log_reader {
    char line[LOG_WIDTH + 1];
    size_t n;
    int escape;          /* inside a sequence that begins with ESC         */
    uint64_t lines, cut; /* lines that are not empty; of them, cut short   */
    uint64_t ends;       /* LFs: the line has the number ends + 1          */
    uint64_t since;      /* bytes since the last end of a line             */
    int is_cut;
    uint64_t window; /* the last eight bytes that were left out        */
    uint64_t hidden; /* words about scales and overflows among them    */
} log_reader;

/* traininglog_reader_bytes -- call visit for every line that is complete. 0, or what visit returned. */
int traininglog_reader_bytes(log_reader *r, const char *bytes, size_t n, int (*visit)(const char *line, void *context),
                             void *context);
int traininglog_reader_end(log_reader *r, int (*visit)(const char *line, void *context), void *context);
