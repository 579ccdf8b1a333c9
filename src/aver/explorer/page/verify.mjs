import { lstat, open, readFile, readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { constants, readFileSync } from "node:fs";
import { createHash } from "node:crypto";
// src/verify/json.ts
/**
* Read JSON from outside strictly, in bounded time and memory. The twin of `aver.capsule.json_reader`.
*
* These are refused as `Unreadable`:
*
* 1. Bytes that are not UTF-8, or not JSON.
* 2. Duplicate keys in one object, because two readers could see two different records (`DuplicateKey`).
* 3. NaN, Infinity, and numbers too large for a float or with absurdly many digits.
* 4. Nesting deeper than `DEPTH_MAX`.
* 5. A document or element larger than `ELEMENT_MAX`, or with more values than `TOKENS_MAX`.
*
* A number keeps its text: JavaScript would round an integer beyond 2^53, and would forget that `1.0` is no integer.
* An object is a `Map`, so that no key such as `__proto__` has a meaning.
*/
var ELEMENT_MAX = 16777216;
/** Most commas, colons and opening brackets outside strings in one element. It bounds the memory of the result. */
var TOKENS_MAX = 1e6;
/** Most digits of an integer. Python's reader has the same limit, and the two must agree. */
var INTEGER_DIGITS_MAX = 4300;
/** Digits below which an integer is read by its characters alone. */
var SHORT_DIGITS = 16;
/** Something from outside that cannot be read. `code` is the code of the finding that it becomes. */
var BadInput = class extends Error {
	get code() {
		return "SCHEMA_INVALID";
	}
};
/** There is no such file or record. */
var NotFound = class extends BadInput {};
/** The bytes are not JSON that can be read safely. */
var Unreadable = class extends BadInput {};
/** One object has the same key twice, so two readers can see two different records. */
var DuplicateKey = class extends Unreadable {
	get code() {
		return "DUPLICATE_KEY";
	}
};
/** A value without a canonical form. */
var NotCanonical = class extends BadInput {};
/** A number, as it is written. */
var JsonNumber = class {
	constructor(text, isInteger = INTEGER.test(text)) {
		this.text = text;
		this.isInteger = isInteger;
	}
	/** Its value as JavaScript has it: exact only for integers up to 2^53. */
	get value() {
		return Number(this.text);
	}
};
var INTEGER = /^-?[0-9]+$/;
var SPACE = /[ \t\r\n]*/y;
var CONTROL = /[\u0000-\u001f]/g;
var NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
var decoder = new TextDecoder("utf-8", {
	fatal: true,
	ignoreBOM: true
});
var encoder = new TextEncoder();
/** Decode bytes. Raises `Unreadable` if they are not UTF-8. */
function decodeUtf8(data) {
	try {
		return decoder.decode(data);
	} catch {
		throw new Unreadable("not UTF-8");
	}
}
/** Parse one JSON document strictly. Raises `Unreadable`. */
function readJson(data) {
	return new Parser(decodeBounded(data)).document();
}
/** Parse a text that is known to be within the bounds. */
function parseBounded(text) {
	return new Parser(text).document();
}
/**
* Parse one JSON document strictly, and say whether it is written as `canonicalJson` writes its value. The parser sees
* that on its way, and writes nothing to compare. Raises `Unreadable`.
*/
function readWithForm(text, writeNumber) {
	const parser = new Parser(decodeBounded(text), writeNumber);
	return {
		value: parser.document(),
		isCanonical: parser.isCanonical
	};
}
/** Decode a text and check rules 1, 4 and 5. */
function decodeBounded(data) {
	if (isTooLarge(data)) throw new Unreadable(`larger than ${ELEMENT_MAX} bytes`);
	const text = typeof data === "string" ? data : decodeUtf8(data);
	checkTokenCount(text);
	if (countOf$1(text, "[") + countOf$1(text, "{") > 200) {
		const start = skipSpace(text, 0);
		if (start < text.length) findValueEnd(text, start);
	}
	return text;
}
/** Whether it has more than `ELEMENT_MAX` bytes. */
function isTooLarge(data) {
	if (data.length > 16777216) return true;
	if (typeof data !== "string" || 3 * data.length <= 16777216) return false;
	return byteLength(data) > ELEMENT_MAX;
}
/** How many bytes a text has as UTF-8; a lone surrogate counts as three. */
function byteLength(text) {
	let size = text.length;
	for (let at = 0; at < text.length; at++) {
		const unit = text.charCodeAt(at);
		if (unit >= 2048) size += unit >= 55296 && unit < 57344 && isPair(text, at) ? 1 : 2;
		else if (unit >= 128) size += 1;
	}
	return size;
}
function isPair(text, at) {
	const unit = text.charCodeAt(at);
	const other = unit < 56320 ? text.charCodeAt(at + 1) : text.charCodeAt(at - 1);
	return unit < 56320 ? other >= 56320 && other < 57344 : other >= 55296 && other < 56320;
}
function countOf$1(text, character) {
	let count = 0;
	for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) count++;
	return count;
}
/** Refuse a text with more tokens than `TOKENS_MAX`. */
function checkTokenCount(text) {
	if (text.length > 1e6 && countTokens(text) > 1e6) throw tooManyValues();
}
function tooManyValues() {
	return new Unreadable(`holds more than ${TOKENS_MAX} values`);
}
/** Count the tokens outside strings, no further than the limit. */
function countTokens(text) {
	let count = 0;
	for (let at = 0; at < text.length && count <= 1e6; at++) {
		const unit = text.charCodeAt(at);
		if (unit === 34) {
			const end = findStringEnd(text, at);
			if (end === null) break;
			at = end - 1;
		} else if (unit === 44 || unit === 58 || unit === 91 || unit === 123) count++;
	}
	return count;
}
function skipSpace(text, at) {
	if (text.charCodeAt(at) > 32) return at;
	SPACE.lastIndex = at;
	SPACE.test(text);
	return SPACE.lastIndex;
}
function findStringEnd(text, at) {
	for (let quote = text.indexOf("\"", at + 1); quote >= 0; quote = text.indexOf("\"", quote + 1)) {
		let before = quote - 1;
		while (text.charCodeAt(before) === 92) before--;
		if ((quote - before) % 2 === 1) return quote + 1;
	}
	return null;
}
/** Find the end of the value that begins at `at`; null if the text ends before. Does not check its syntax. */
function findValueEnd(text, at) {
	const first = text.charCodeAt(at);
	if (first === 34) return findStringEnd(text, at);
	if (first !== 91 && first !== 123) {
		let end = at;
		while (end < text.length && !" 	\r\n\"[]{},:".includes(text[end])) end++;
		return end < text.length ? end : null;
	}
	let depth = 0;
	let opened = 0;
	for (let here = at; here < text.length; here++) {
		const unit = text.charCodeAt(here);
		if (unit === 34) {
			const end = findStringEnd(text, here);
			if (end === null) return null;
			here = end - 1;
		} else if (unit === 91 || unit === 123) {
			depth++;
			opened++;
			if (depth > 200) throw new Unreadable(`nested deeper than 200 levels`);
			if (opened > 1e6) throw tooManyValues();
		} else if (unit === 93 || unit === 125) {
			depth--;
			if (depth === 0) return here + 1;
		}
	}
	return null;
}
/** The place of the first character from `at` on that no string holds as it is; the end if there is none. */
function findControl(text, at) {
	CONTROL.lastIndex = at;
	return CONTROL.test(text) ? CONTROL.lastIndex - 1 : text.length;
}
/** The keys of the document that was read last, in their order; only those without escapes. */
var GUESSES = [];
var GUESSES_MAX = 256;
var GUESS_CHARS = 64;
var Parser = class {
	at = 0;
	/** How many keys were read. */
	keys = 0;
	/** The next backslash and control character that is not behind `at`; the end if there is none. */
	nextEscape = -1;
	nextControl = -1;
	/** How canonical JSON writes a number; null if nobody asks whether the text is canonical. */
	/** Whether all that was read so far is written as canonical JSON writes it. */
	isCanonical = true;
	constructor(text, writeNumber = null) {
		this.text = text;
		this.writeNumber = writeNumber;
	}
	document() {
		this.space();
		const value = this.value();
		this.space();
		if (this.at !== this.text.length) throw this.error("something follows the end of the document");
		return value;
	}
	space() {
		const unit = this.text.charCodeAt(this.at);
		if (unit === 32 || unit >= 9 && unit <= 13) {
			this.at = skipSpace(this.text, this.at);
			this.isCanonical = false;
		}
	}
	error(words) {
		return new Unreadable(`not valid JSON: ${words} (character ${this.at})`);
	}
	value() {
		switch (this.text.charCodeAt(this.at)) {
			case 34: return this.string();
			case 123: return this.object();
			case 91: return this.array();
			case 116: return this.word("true", true);
			case 102: return this.word("false", false);
			case 110: return this.word("null", null);
			default: return this.number();
		}
	}
	word(word, value) {
		if (!this.text.startsWith(word, this.at)) throw this.error("expected a value");
		this.at += word.length;
		return value;
	}
	number() {
		const { text, at } = this;
		let end = at;
		for (let unit = text.charCodeAt(end); unit >= 48 && unit <= 57; unit = text.charCodeAt(++end));
		const next = text.charCodeAt(end);
		if (end > at && end - at < SHORT_DIGITS && (text.charCodeAt(at) !== 48 || end === at + 1) && next !== 46 && next !== 69 && next !== 101) {
			this.at = end;
			return new JsonNumber(text.slice(at, end), true);
		}
		NUMBER.lastIndex = at;
		const match = NUMBER.exec(text);
		if (match === null) throw this.error("expected a value");
		this.at = NUMBER.lastIndex;
		const number = new JsonNumber(match[0]);
		if (number.isInteger) {
			if (number.text.length - Number(number.text.startsWith("-")) > INTEGER_DIGITS_MAX) throw this.error("an integer with too many digits");
		} else if (!Number.isFinite(number.value)) throw new Unreadable(`the number ${number.text.slice(0, 40)} is too large for a float`);
		if (this.writeNumber !== null && this.isCanonical) this.isCanonical = this.writeNumber(number) === number.text;
		return number;
	}
	string() {
		const { text, at } = this;
		const quote = text.indexOf("\"", at + 1);
		if (this.nextEscape < at) {
			const escape = text.indexOf("\\", at);
			this.nextEscape = escape < 0 ? text.length : escape;
		}
		if (quote >= 0 && quote < this.nextEscape) {
			if (this.nextControl < at) this.nextControl = findControl(text, at);
			if (quote < this.nextControl) {
				this.at = quote + 1;
				return text.slice(at + 1, quote);
			}
		}
		const end = findStringEnd(text, at);
		if (end === null) throw this.error("a string has no end, or holds a control character");
		try {
			const written = text.slice(at, end);
			const value = JSON.parse(written);
			this.at = end;
			if (this.writeNumber !== null && this.isCanonical) this.isCanonical = value.isWellFormed() && JSON.stringify(value) === written;
			return value;
		} catch {
			throw this.error("a string has a bad escape, or holds a control character");
		}
	}
	/** A key. Records have mostly the keys of the record before, in its order: looking for those first is faster. */
	key() {
		const turn = this.keys++;
		const guess = GUESSES[turn];
		if (guess !== void 0 && this.text.startsWith(guess.written, this.at)) {
			this.at += guess.written.length;
			return guess.key;
		}
		const { at } = this;
		const key = this.string();
		if (turn < GUESSES_MAX && key.length < GUESS_CHARS && this.at - at === key.length + 2) GUESSES[turn] = {
			key,
			written: this.text.slice(at, this.at)
		};
		return key;
	}
	array() {
		const items = [];
		this.at++;
		this.space();
		if (this.text.charCodeAt(this.at) === 93) {
			this.at++;
			return items;
		}
		for (;;) {
			items.push(this.value());
			this.space();
			const unit = this.text.charCodeAt(this.at);
			if (unit === 93) {
				this.at++;
				return items;
			}
			if (unit !== 44) throw this.error("expected a comma or the end of an array");
			this.at++;
			this.space();
		}
	}
	object() {
		const members = /* @__PURE__ */ new Map();
		let count = 0;
		let twice = null;
		let before = null;
		this.at++;
		this.space();
		if (this.text.charCodeAt(this.at) === 125) {
			this.at++;
			return members;
		}
		for (;;) {
			if (this.text.charCodeAt(this.at) !== 34) throw this.error("expected a key");
			const key = this.key();
			if (this.isCanonical && before !== null) this.isCanonical = compareCodePoints(before, key) < 0;
			before = key;
			this.space();
			if (this.text.charCodeAt(this.at) !== 58) throw this.error("expected a colon");
			this.at++;
			this.space();
			const value = this.value();
			count++;
			members.set(key, value);
			if (members.size !== count && twice === null) twice = key;
			this.space();
			const unit = this.text.charCodeAt(this.at);
			if (unit === 125) {
				this.at++;
				if (twice !== null) throw new DuplicateKey(`the key ${JSON.stringify(twice.slice(0, 80))} occurs twice in one object`);
				return members;
			}
			if (unit !== 44) throw this.error("expected a comma or the end of an object");
			this.at++;
			this.space();
		}
	}
};
/** Compare two texts by their code points. */
function compareCodePoints(one, other) {
	const length = Math.min(one.length, other.length);
	for (let at = 0; at < length; at++) {
		const left = one.charCodeAt(at);
		const right = other.charCodeAt(at);
		if (left === right) continue;
		const isLeftHigh = left >= 55296 && left < 57344;
		return isLeftHigh === (right >= 55296 && right < 57344) ? left - right : isLeftHigh ? 1 : -1;
	}
	return one.length - other.length;
}
function isObject(value) {
	return value instanceof Map;
}
function isInteger(value) {
	return value instanceof JsonNumber && value.isInteger;
}
function isFloat(value) {
	return value instanceof JsonNumber && !value.isInteger;
}
/** Whether an integer is at least 0 and below 2^63, the range of sequence numbers. */
function isPlace(value) {
	if (!isInteger(value)) return false;
	if (value.text.startsWith("-")) return value.text === "-0";
	return value.text.length < 19 || value.text.length === 19 && value.text < "9223372036854775808";
}
/** Whether two values are equal as Python compares them: by value, with `true` as 1. */
function equalJson(one, other) {
	if (one === other) return true;
	const left = asNumber(one);
	const right = asNumber(other);
	if (left !== null && right !== null) return equalNumbers(left, right);
	if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((item, at) => equalJson(item, other[at]));
	if (isObject(one) && isObject(other)) {
		if (one.size !== other.size) return false;
		for (const [key, value] of one) if (!other.has(key) || !equalJson(value, other.get(key))) return false;
		return true;
	}
	return false;
}
function asNumber(value) {
	if (value instanceof JsonNumber) return value;
	return typeof value === "boolean" ? new JsonNumber(value ? "1" : "0") : null;
}
function equalNumbers(one, other) {
	if (one.text === other.text) return true;
	if (one.isInteger && other.isInteger) return BigInt(one.text) === BigInt(other.text);
	if (!one.isInteger && !other.isInteger) return one.value === other.value;
	const [whole, real] = one.isInteger ? [one, other] : [other, one];
	return Number.isInteger(real.value) && BigInt(real.value) === BigInt(whole.text);
}
// src/verify/options.ts
/** The reader has stopped the verification. There is no verdict. */
var Stopped = class extends Error {};
/** The thing is too large or of a sort that this verifier does not judge. There is no verdict. */
var NotJudged = class extends Error {};
/** Counts what was read, tells the caller, and stops when the caller wants it. */
var ProgressMeter = class {
	bytes = 0;
	records = 0;
	constructor(options, totalBytes) {
		this.options = options;
		this.totalBytes = totalBytes;
	}
	/** Note that so many records, of so many bytes, were judged. Raises `Stopped`. */
	add(records, bytes) {
		this.records += records;
		this.bytes = Math.min(this.bytes + bytes, this.totalBytes);
		if (this.options.signal?.aborted) throw new Stopped("stopped by the reader");
		this.options.progress?.({
			records: this.records,
			bytes: this.bytes,
			totalBytes: this.totalBytes
		});
	}
};
// src/verify/canonical.ts
/**
* Canonical bytes: the one form of a JSON value that Aver hashes and signs. The twin of `aver.capsule.canonical`.
*
*     canonicalJson({"b": [1, 2.5, null], "a": "é\n"})  is  {"a":"é\n","b":[1,2.5,null]}
*
* Keys are sorted by code point. Integers are written exactly, other numbers as Python's `repr` writes a float. A text
* with a lone surrogate has no canonical form.
*/
/** The canonical text of a value. Raises `NotCanonical`. */
function canonicalJson(value) {
	return write(value, WELL_FORMED, canonicalNumber, true, 0);
}
/** The canonical text of a capsule's content, or of any value: its float-typed fields are floats. */
function canonicalContent(value) {
	if (!isObject(value) || !value.has("reasoning")) return canonicalJson(value);
	const coerced = coerceFloatFields(value, (number) => {
		return Number.isFinite(number.value) ? new JsonNumber(pythonRepr(number.value)) : null;
	});
	if (coerced === null) throw new NotCanonical("is too large for a float");
	return canonicalJson(coerced);
}
/** Compact JSON with the keys as they stand. */
function compactJson(value) {
	return write(value, WELL_FORMED, canonicalNumber, false, 0);
}
/** Sorted compact JSON in pure ASCII, as receipts and request hashes use it. */
function asciiJson(value) {
	return write(value, asciiString, canonicalNumber, true, 0);
}
/** The number as Python writes it. */
function canonicalNumber(number) {
	if (number.isInteger) return number.text === "-0" ? "0" : number.text;
	return pythonRepr(number.value);
}
/** A float as Python's `repr` writes it: the shortest digits, an exponent below 1e-4 and from 1e16 on. */
function pythonRepr(value) {
	if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
	const size = Math.abs(value);
	if (size >= 1e-4 && size < 0x2386f26fc10000) {
		const text = String(value);
		return text.includes(".") ? text : `${text}.0`;
	}
	const [mantissa = "", exponent = ""] = value.toExponential().split("e");
	return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}
function write(value, string, number, sorted, depth) {
	if (typeof value === "string") return string(value);
	if (value === null) return "null";
	if (typeof value === "boolean") return value ? "true" : "false";
	if (value instanceof JsonNumber) return number(value);
	if (depth >= 200) throw new NotCanonical(`nested deeper than 200 levels`);
	if (Array.isArray(value)) {
		let out = "[";
		for (let at = 0; at < value.length; at++) out += (at ? "," : "") + write(value[at], string, number, sorted, depth + 1);
		return `${out}]`;
	}
	let out = "{";
	for (const key of sorted ? sortedKeys(value) : value.keys()) out += `${out.length > 1 ? "," : ""}${string(key)}:${write(value.get(key), string, number, sorted, depth + 1)}`;
	return `${out}}`;
}
var WELL_FORMED = (text) => {
	if (!text.isWellFormed()) throw new NotCanonical("holds a lone surrogate, which UTF-8 cannot carry");
	return JSON.stringify(text);
};
/** A string in pure ASCII. A lone surrogate is written as its escape. */
function asciiString(text) {
	return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
/** The keys of an object by code point. JavaScript's own order is that of UTF-16 units. */
function sortedKeys(value) {
	const keys = [...value.keys()].sort();
	return keys.some((key) => /[\ud800-\uffff]/.test(key)) ? keys.sort(compareCodePoints) : keys;
}
/** Sort texts as Python does. */
function sortTexts(texts) {
	return [...texts].sort(compareCodePoints);
}
/**
* The values of some top-level keys, and every text in which the rest may have been hashed; the likeliest first.
*
* 1. The canonical form. 2. The same with the float-typed fields as floats: a JavaScript writer stores `1` and hashes
* `1.0`. 3. and 4. The same two with each number as it is written. No form changes the value of a number.
*/
function splitOffKeys(data, keys) {
	const document = parseDocument(data);
	if (!isObject(document)) throw new Unreadable("a capsule must be a JSON object");
	const numbers = new NumberSurvey();
	numbers.look(document);
	const parted = /* @__PURE__ */ new Map();
	for (const key of keys) {
		const value = document.get(key);
		if (value !== void 0) parted.set(key, value);
		document.delete(key);
	}
	return {
		parted,
		forms: () => iterateForms(document, numbers)
	};
}
/** Parse a document. White space around it that only Python's `strip` knows is accepted where the rest is compact. */
function parseDocument(data) {
	if (typeof data !== "string") {
		if ([data[0], data[data.length - 1]].some((byte) => byte === 11 || byte === 12 || isSpace(byte)) && (data.includes(11) || data.includes(12))) {
			let start = 0;
			let end = data.length;
			while (start < end && isStripped$1(data[start])) start++;
			while (end > start && isStripped$1(data[end - 1])) end--;
			try {
				const text = decodeUtf8(data.subarray(start, end));
				const document = parseBounded(decodeBounded(text));
				if (isObject(document) && compactJson(document) === text) return document;
			} catch {}
		}
	}
	return parseBounded(decodeBounded(data));
}
function isSpace(byte) {
	return byte === 32 || byte === 9 || byte === 10 || byte === 13;
}
function isStripped$1(byte) {
	return isSpace(byte) || byte === 11 || byte === 12;
}
/** How the numbers of a document are written. */
var NumberSurvey = class {
	/** Whether each is written as canonical JSON writes it. */
	isCanonical = true;
	/** Whether each has, to the last digit, the value that is written. */
	isExact = true;
	look(value) {
		if (value instanceof JsonNumber) {
			if (canonicalNumber(value) === value.text) return;
			this.isCanonical = false;
			if (!value.isInteger) this.isExact = this.isExact && isSameDecimal(value.text, pythonRepr(value.value));
		} else if (Array.isArray(value)) for (const item of value) this.look(item);
		else if (isObject(value)) for (const item of value.values()) this.look(item);
	}
};
/** Whether two texts of numbers mean the same decimal number. */
function isSameDecimal(one, other) {
	const left = readDecimal(one);
	const right = readDecimal(other);
	return left !== null && right !== null && left === right;
}
function readDecimal(text) {
	const match = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/.exec(text);
	if (match === null) return null;
	const [, sign = "", whole = "", fraction = "", power = "0"] = match;
	const digits = (whole + fraction).replace(/^0+/, "");
	const trimmed = digits.replace(/0+$/, "");
	if (trimmed === "") return "0";
	if (power.length > 18) return null;
	return `${sign}${trimmed}e${BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - trimmed.length)}`;
}
function* iterateForms(document, numbers) {
	if (numbers.isExact) {
		yield canonicalJson(document);
		const coerced = coerceFloatFields(document, (number) => {
			return Number.isFinite(number.value) && BigInt(number.text) === BigInt(number.value) ? new JsonNumber(pythonRepr(number.value)) : null;
		});
		if (coerced !== null && coerced !== document) yield canonicalJson(coerced);
	}
	if (numbers.isCanonical) return;
	const asWritten = (value) => {
		try {
			return write(value, WELL_FORMED, (number) => number.text, true, 0);
		} catch {
			throw new Unreadable("a string holds a lone surrogate");
		}
	};
	yield asWritten(document);
	const coerced = coerceFloatFields(document, (number) => new JsonNumber(`${number.text}.0`));
	if (coerced !== null && coerced !== document) yield asWritten(coerced);
}
/**
* A copy of a capsule's content with `reasoning.confidence` and `reasoning.options[].feasibility` as floats.
*
* The same object if there is nothing to change; null if `toFloat` refuses one of the numbers.
*/
function coerceFloatFields(content, toFloat) {
	const reasoning = content.get("reasoning");
	if (!isObject(reasoning)) return content;
	const changed = new Map(reasoning);
	let isChanged = false;
	const confidence = reasoning.get("confidence");
	if (isInteger(confidence)) {
		const float = toFloat(confidence);
		if (float === null) return null;
		changed.set("confidence", float);
		isChanged = true;
	}
	const options = reasoning.get("options");
	if (Array.isArray(options)) {
		const copies = [];
		for (const option of options) {
			const score = isObject(option) ? option.get("feasibility") : void 0;
			if (isObject(option) && isInteger(score)) {
				const float = toFloat(score);
				if (float === null) return null;
				copies.push(new Map(option).set("feasibility", float));
				isChanged = true;
			} else copies.push(option);
		}
		changed.set("options", copies);
	}
	return isChanged ? new Map(content).set("reasoning", changed) : content;
}
// node_modules/@noble/hashes/utils.js
function isBytes$1(a) {
	return a instanceof Uint8Array || ArrayBuffer.isView(a) && a.constructor.name === "Uint8Array" && "BYTES_PER_ELEMENT" in a && a.BYTES_PER_ELEMENT === 1;
}
var atitle$1 = (title) => title ? `"${title}" ` : "";
function anumber$1(n, title = "") {
	if (typeof n !== "number") throw new TypeError(atitle$1(title) + "expected number, got " + typeof n);
	if (!Number.isSafeInteger(n) || n < 0) throw new RangeError(atitle$1(title) + "expected integer >= 0, got " + n);
	return n;
}
function abool$1(value, title = "") {
	if (typeof value !== "boolean") throw new TypeError(atitle$1(title) + "expected boolean, got type=" + typeof value);
	return value;
}
function abytes$1(value, length, title = "") {
	if (isBytes$1(value) && (length === void 0 || value.length === length)) return value;
	if (length !== void 0) anumber$1(length, "length");
	const bytes = isBytes$1(value);
	const ofLen = length !== void 0 ? ` of length ${length}` : "";
	const got = bytes ? `length=${value.length}` : `type=${typeof value}`;
	const message = atitle$1(title) + "expected Uint8Array" + ofLen + ", got " + got;
	if (!bytes) throw new TypeError(message);
	throw new RangeError(message);
}
var aobject$2 = (value, label) => {
	if (value === null || typeof value !== "object" || Array.isArray(value)) throw new TypeError((label === "object" ? "" : `"${label}" `) + "expected object, got type=" + typeof value);
};
var aopts = (value, label) => {
	aobject$2(value, label);
	const proto = Object.getPrototypeOf(value);
	if (proto !== Object.prototype && proto !== null) throw new TypeError(`"${label}" expected plain object`);
	if (Object.hasOwn(value, "__proto__")) throw new TypeError(`"${label}.__proto__" is not allowed`);
};
function aexists(instance, checkFinished = true) {
	if (instance.destroyed) throw new Error("hash was destroyed");
	if (checkFinished && instance.finished) throw new Error("digest() was already called");
}
function aoutput(out, instance) {
	abytes$1(out, void 0, "output");
	const min = instance.outputLen;
	if (!(out.length >= min)) throw new RangeError("\"output\" expected length >= " + min);
}
function u32(arr) {
	return new Uint32Array(arr.buffer, arr.byteOffset, Math.floor(arr.byteLength / 4));
}
function clean(...arrays) {
	for (let i = 0; i < arrays.length; i++) arrays[i].fill(0);
}
function createView(arr) {
	return new DataView(arr.buffer, arr.byteOffset, arr.byteLength);
}
function rotr(word, shift) {
	return word << 32 - shift | word >>> shift;
}
var isLE = /* @__PURE__ */ (() => new Uint8Array(new Uint32Array([287454020]).buffer)[0] === 68)();
function byteSwap(word) {
	return word << 24 & 4278190080 | word << 8 & 16711680 | word >>> 8 & 65280 | word >>> 24 & 255;
}
function byteSwap32(arr) {
	for (let i = 0; i < arr.length; i++) arr[i] = byteSwap(arr[i]);
	return arr;
}
var swap32IfBE = isLE ? (u) => u : byteSwap32;
var hasHexBuiltin = /* @__PURE__ */ (() => typeof Uint8Array.from([]).toHex === "function" && typeof Uint8Array.fromHex === "function")();
var hexes = /* @__PURE__ */ Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));
function bytesToHex$1(bytes) {
	abytes$1(bytes);
	if (hasHexBuiltin) return bytes.toHex();
	let hex = "";
	for (let i = 0; i < bytes.length; i++) hex += hexes[bytes[i]];
	return hex;
}
function asciiToBase16(ch) {
	return ch >= 48 && ch <= 57 ? ch - 48 : ch >= 65 && ch <= 70 ? ch - 55 : ch >= 97 && ch <= 102 ? ch - 87 : void 0;
}
function hexToBytes$1(hex) {
	if (typeof hex !== "string") throw new TypeError("hex string expected, got " + typeof hex);
	if (hasHexBuiltin) try {
		return Uint8Array.fromHex(hex);
	} catch (error) {
		if (error instanceof SyntaxError) throw new RangeError(error.message);
		throw error;
	}
	const hl = hex.length;
	const al = hl / 2;
	if (hl % 2) throw new RangeError("hex string expected, got unpadded hex of length " + hl);
	const array = new Uint8Array(al);
	for (let ai = 0, hi = 0; ai < al; ai++, hi += 2) {
		const n1 = asciiToBase16(hex.charCodeAt(hi));
		const n2 = asciiToBase16(hex.charCodeAt(hi + 1));
		if (n1 === void 0 || n2 === void 0) {
			const char = hex[hi] + hex[hi + 1];
			throw new RangeError("hex string expected, got non-hex character \"" + char + "\" at index " + hi);
		}
		array[ai] = n1 * 16 + n2;
	}
	return array;
}
function concatBytes$1(...arrays) {
	let sum = 0;
	for (let i = 0; i < arrays.length; i++) {
		const a = arrays[i];
		abytes$1(a);
		sum += a.length;
	}
	const res = new Uint8Array(sum);
	for (let i = 0, pad = 0; i < arrays.length; i++) {
		const a = arrays[i];
		res.set(a, pad);
		pad += a.length;
	}
	return res;
}
function checkOpts(defaults, opts, title = "opts") {
	aopts(defaults, "defaults");
	if (opts !== void 0) aopts(opts, title);
	return Object.assign(Object.create(null), defaults, opts);
}
function createHasher(hashCons, info = {}) {
	if (typeof hashCons !== "function") throw new TypeError("\"hashCons\" expected function, got type=" + typeof hashCons);
	info = checkOpts({}, info, "info");
	const hashC = (msg, opts) => hashCons(opts).update(msg).digest();
	const tmp = hashCons(void 0);
	hashC.outputLen = tmp.outputLen;
	hashC.blockLen = tmp.blockLen;
	hashC.canXOF = tmp.canXOF;
	hashC.create = (opts) => hashCons(opts);
	Object.assign(hashC, info);
	return Object.freeze(hashC);
}
function randomBytes$1(bytesLength = 32) {
	anumber$1(bytesLength, "bytesLength");
	const cr = typeof globalThis === "object" ? globalThis.crypto : null;
	if (typeof cr?.getRandomValues !== "function") throw new Error("crypto.getRandomValues must be defined");
	if (bytesLength > 65536) throw new RangeError(`"bytesLength" expected <= 65536, got ${bytesLength}`);
	return cr.getRandomValues(new Uint8Array(bytesLength));
}
var oidNist = (suffix) => ({ oid: Uint8Array.from([
	6,
	9,
	96,
	134,
	72,
	1,
	101,
	3,
	4,
	2,
	suffix
]) });
// node_modules/@noble/curves/utils.js
/*! noble-curves - MIT License (c) 2022 Paul Miller (paulmillr.com) */
function aarray$1(item, title, inner = () => {}) {
	if (!Array.isArray(item)) throw new TypeError(`"${title}" expected array, got type=${typeof item}`);
	for (let i = 0; i < item.length; i++) inner(item[i], `${title}[${i}]`);
	return item;
}
var abytes = (value, length, title) => abytes$1(value, length, title);
var anumber = anumber$1;
function aobject$1(value, title = "object") {
	if (value === null || typeof value !== "object" || Array.isArray(value)) throw new TypeError(title === "object" ? "expected valid options object" : `"${title}" expected object, got type=${typeof value}`);
	return value;
}
function afunction(value, title) {
	if (typeof value !== "function") throw new TypeError(`"${title}" is invalid: expected function, got ${typeof value}`);
	return value;
}
var bytesToHex = bytesToHex$1;
var concatBytes = (...arrays) => concatBytes$1(...arrays);
var hexToBytes = (hex) => hexToBytes$1(hex);
var isBytes = isBytes$1;
var randomBytes = (bytesLength) => randomBytes$1(bytesLength);
var _0n$5 = /* @__PURE__ */ BigInt(0);
var _1n$5 = /* @__PURE__ */ BigInt(1);
var atitle = (title) => title ? `"${title}" ` : "";
function abool(value, title = "") {
	if (typeof value !== "boolean") throw new TypeError(atitle(title) + "expected boolean, got type=" + typeof value);
	return value;
}
function abignumber(n) {
	if (typeof n === "bigint") {
		if (!isPosBig(n)) throw new RangeError("positive bigint expected, got " + n);
	} else anumber(n);
	return n;
}
function asafenumber(value, title = "") {
	if (typeof value !== "number") {
		const prefix = title && `"${title}" `;
		throw new TypeError(prefix + "expected number, got type=" + typeof value);
	}
	if (!Number.isSafeInteger(value)) {
		const prefix = title && `"${title}" `;
		throw new RangeError(prefix + "expected safe integer, got " + value);
	}
}
function hexToNumber(hex) {
	if (typeof hex !== "string") throw new TypeError("hex string expected, got " + typeof hex);
	return hex === "" ? _0n$5 : BigInt("0x" + hex);
}
function bytesToNumberBE(bytes) {
	return hexToNumber(bytesToHex$1(bytes));
}
function bytesToNumberLE(bytes) {
	return hexToNumber(bytesToHex$1(copyBytes(abytes$1(bytes)).reverse()));
}
function numberToBytesBE(n, len) {
	anumber$1(len);
	if (len === 0) throw new Error("zero output length is invalid");
	n = abignumber(n);
	const expectedLen = len * 2;
	const hex = n.toString(16);
	if (hex.length > expectedLen) throw new RangeError("number is too large");
	return hexToBytes$1(hex.padStart(expectedLen, "0"));
}
function numberToBytesLE(n, len) {
	return numberToBytesBE(n, len).reverse();
}
function copyBytes(bytes) {
	return Uint8Array.from(abytes(bytes));
}
function isPosBig(n) {
	return typeof n === "bigint" && _0n$5 <= n;
}
function inRange(n, min, max) {
	return isPosBig(n) && isPosBig(min) && isPosBig(max) && min <= n && n < max;
}
function aInRange(title, n, min, max) {
	if (!inRange(n, min, max)) throw new RangeError("expected valid " + title + ": " + min + " <= n < " + max + ", got " + n);
}
function bitLen(n) {
	if (n < _0n$5) throw new Error("expected non-negative bigint, got " + n);
	return n === _0n$5 ? 0 : n.toString(2).length;
}
var bitMask = (n) => {
	asafenumber(n, "n");
	return (_1n$5 << BigInt(n)) - _1n$5;
};
function validateObject(object, fields = {}, optFields = {}, title = "object") {
	aobject$1(object, title);
	aobject$1(fields, "fields");
	aobject$1(optFields, "optFields");
	function checkField(fieldName, expectedType, isOpt) {
		const label = title === "object" ? `param "${String(fieldName)}"` : `"${title}.${String(fieldName)}"`;
		const val = object[fieldName];
		if (!Object.hasOwn(object, fieldName) && (isOpt ? val !== void 0 : expectedType !== "function")) throw new TypeError(`${label} is invalid: expected own property`);
		if (isOpt && val === void 0) return;
		const current = typeof val;
		if (current !== expectedType || val === null) throw new TypeError(`${label} is invalid: expected ${expectedType}, got ${current}`);
	}
	const iter = (f, isOpt) => Object.entries(f).forEach(([k, v]) => checkField(k, v, isOpt));
	iter(fields, false);
	iter(optFields, true);
}
// node_modules/@noble/hashes/_u64.js
var U32_MASK64 = /* @__PURE__ */ (() => BigInt(2 ** 32 - 1))();
var _32n = /* @__PURE__ */ BigInt(32);
function fromBig(n, le = false) {
	if (le) return {
		h: Number(n & U32_MASK64),
		l: Number(n >> _32n & U32_MASK64)
	};
	return {
		h: Number(n >> _32n & U32_MASK64) | 0,
		l: Number(n & U32_MASK64) | 0
	};
}
function split(lst, le = false) {
	const len = lst.length;
	let Ah = new Uint32Array(len);
	let Al = new Uint32Array(len);
	for (let i = 0; i < len; i++) {
		const { h, l } = fromBig(lst[i], le);
		[Ah[i], Al[i]] = [h, l];
	}
	return [Ah, Al];
}
var fromNumH = (n) => n / 2 ** 32 | 0;
var fromNumL = (n) => n >>> 0;
function setU64FromNum(view, byteOffset, n, isLE) {
	const h = fromNumH(n);
	const l = fromNumL(n);
	view.setUint32(byteOffset, isLE ? l : h, isLE);
	view.setUint32(byteOffset + 4, isLE ? h : l, isLE);
}
var shrSH = (h, _l, s) => h >>> s;
var shrSL = (h, l, s) => h << 32 - s | l >>> s;
var rotrSH = (h, l, s) => h >>> s | l << 32 - s;
var rotrSL = (h, l, s) => h << 32 - s | l >>> s;
var rotrBH = (h, l, s) => h << 64 - s | l >>> s - 32;
var rotrBL = (h, l, s) => h >>> s - 32 | l << 64 - s;
function add(Ah, Al, Bh, Bl) {
	const l = (Al >>> 0) + (Bl >>> 0);
	return {
		h: Ah + Bh + (l / 2 ** 32 | 0) | 0,
		l: l | 0
	};
}
var add3L = (Al, Bl, Cl) => (Al >>> 0) + (Bl >>> 0) + (Cl >>> 0);
var add3H = (low, Ah, Bh, Ch) => Ah + Bh + Ch + (low / 2 ** 32 | 0) | 0;
var add4L = (Al, Bl, Cl, Dl) => (Al >>> 0) + (Bl >>> 0) + (Cl >>> 0) + (Dl >>> 0);
var add4H = (low, Ah, Bh, Ch, Dh) => Ah + Bh + Ch + Dh + (low / 2 ** 32 | 0) | 0;
var add5L = (Al, Bl, Cl, Dl, El) => (Al >>> 0) + (Bl >>> 0) + (Cl >>> 0) + (Dl >>> 0) + (El >>> 0);
var add5H = (low, Ah, Bh, Ch, Dh, Eh) => Ah + Bh + Ch + Dh + Eh + (low / 2 ** 32 | 0) | 0;
// node_modules/@noble/hashes/sha3.js
var _0n$4 = BigInt(0);
var _1n$4 = BigInt(1);
var _2n$3 = BigInt(2);
var _7n$1 = BigInt(7);
var _256n = BigInt(256);
var _0x71n = BigInt(113);
var SHA3_PI = [];
var SHA3_ROTL = [];
var _SHA3_IOTA = [];
for (let round = 0, R = _1n$4, x = 1, y = 0; round < 24; round++) {
	[x, y] = [y, (2 * x + 3 * y) % 5];
	SHA3_PI.push(2 * (5 * y + x));
	SHA3_ROTL.push((round + 1) * (round + 2) / 2 % 64);
	let t = _0n$4;
	for (let j = 0; j < 7; j++) {
		R = (R << _1n$4 ^ (R >> _7n$1) * _0x71n) % _256n;
		if (R & _2n$3) t ^= _1n$4 << (_1n$4 << BigInt(j)) - _1n$4;
	}
	_SHA3_IOTA.push(t);
}
var IOTAS = split(_SHA3_IOTA, true);
var SHA3_IOTA_H = IOTAS[0];
var SHA3_IOTA_L = IOTAS[1];
var rotlSH = (h, l, s) => h << s | l >>> 32 - s;
var rotlSL = (h, l, s) => l << s | h >>> 32 - s;
var rotlBH = (h, l, s) => l << s - 32 | h >>> 64 - s;
var rotlBL = (h, l, s) => h << s - 32 | l >>> 64 - s;
var rotlH = (h, l, s) => s > 32 ? rotlBH(h, l, s) : rotlSH(h, l, s);
var rotlL = (h, l, s) => s > 32 ? rotlBL(h, l, s) : rotlSL(h, l, s);
var B = /* @__PURE__ */ new Uint32Array(10);
function keccakP(s, rounds = 24) {
	if (!(s instanceof Uint32Array)) throw new TypeError("\"s\" expected Uint32Array(50), got type=" + typeof s);
	if (s.length !== 50) throw new RangeError("\"s\" expected Uint32Array(50), got length=" + s.length);
	anumber$1(rounds, "rounds");
	if (rounds < 1 || rounds > 24) throw new Error("\"rounds\" expected integer 1..24");
	for (let round = 24 - rounds; round < 24; round++) {
		for (let x = 0; x < 10; x++) B[x] = s[x] ^ s[x + 10] ^ s[x + 20] ^ s[x + 30] ^ s[x + 40];
		for (let x = 0; x < 10; x += 2) {
			const idx1 = (x + 8) % 10;
			const idx0 = (x + 2) % 10;
			const B0 = B[idx0];
			const B1 = B[idx0 + 1];
			const Th = rotlH(B0, B1, 1) ^ B[idx1];
			const Tl = rotlL(B0, B1, 1) ^ B[idx1 + 1];
			for (let y = 0; y < 50; y += 10) {
				s[x + y] ^= Th;
				s[x + y + 1] ^= Tl;
			}
		}
		let curH = s[2];
		let curL = s[3];
		for (let t = 0; t < 24; t++) {
			const shift = SHA3_ROTL[t];
			const Th = rotlH(curH, curL, shift);
			const Tl = rotlL(curH, curL, shift);
			const PI = SHA3_PI[t];
			curH = s[PI];
			curL = s[PI + 1];
			s[PI] = Th;
			s[PI + 1] = Tl;
		}
		for (let y = 0; y < 50; y += 10) {
			const b0 = s[y], b1 = s[y + 1], b2 = s[y + 2], b3 = s[y + 3];
			s[y] ^= ~s[y + 2] & s[y + 4];
			s[y + 1] ^= ~s[y + 3] & s[y + 5];
			s[y + 2] ^= ~s[y + 4] & s[y + 6];
			s[y + 3] ^= ~s[y + 5] & s[y + 7];
			s[y + 4] ^= ~s[y + 6] & s[y + 8];
			s[y + 5] ^= ~s[y + 7] & s[y + 9];
			s[y + 6] ^= ~s[y + 8] & b0;
			s[y + 7] ^= ~s[y + 9] & b1;
			s[y + 8] ^= ~b0 & b2;
			s[y + 9] ^= ~b1 & b3;
		}
		s[0] ^= SHA3_IOTA_H[round];
		s[1] ^= SHA3_IOTA_L[round];
	}
	clean(B);
}
var Keccak = class Keccak {
	state;
	pos = 0;
	posOut = 0;
	finished = false;
	state32;
	destroyed = false;
	blockLen;
	suffix;
	outputLen;
	canXOF;
	enableXOF = false;
	rounds;
	constructor(blockLen, suffix, outputLen, enableXOF = false, rounds = 24) {
		anumber$1(blockLen, "blockLen");
		anumber$1(suffix, "suffix");
		anumber$1(rounds, "rounds");
		abool$1(enableXOF, "enableXOF");
		this.blockLen = blockLen;
		this.suffix = suffix;
		this.outputLen = outputLen;
		this.enableXOF = enableXOF;
		this.canXOF = enableXOF;
		this.rounds = rounds;
		anumber$1(outputLen, "outputLen");
		if (!(0 < blockLen && blockLen < 200)) throw new Error("\"blockLen\" must be 1..199");
		this.state = /* @__PURE__ */ new Uint8Array(200);
		this.state32 = u32(this.state);
	}
	clone() {
		return this._cloneInto();
	}
	keccak() {
		swap32IfBE(this.state32);
		keccakP(this.state32, this.rounds);
		swap32IfBE(this.state32);
		this.posOut = 0;
		this.pos = 0;
	}
	update(data) {
		aexists(this);
		abytes$1(data);
		const { blockLen, state, state32 } = this;
		const len = data.length;
		const canUseU32 = blockLen % 4 === 0 && data.byteOffset % 4 === 0;
		const blockLen32 = blockLen / 4;
		const data32 = canUseU32 && len >= blockLen ? u32(data) : void 0;
		for (let pos = 0; pos < len;) {
			if (data32 !== void 0 && this.pos === 0 && pos % 4 === 0 && len - pos >= blockLen) {
				for (let i = 0, o = pos / 4; i < blockLen32; i++) state32[i] ^= data32[o + i];
				pos += blockLen;
				this.pos = blockLen;
				this.keccak();
				continue;
			}
			const take = Math.min(blockLen - this.pos, len - pos);
			for (let i = 0; i < take; i++) state[this.pos++] ^= data[pos++];
			if (this.pos === blockLen) this.keccak();
		}
		return this;
	}
	finish() {
		if (this.finished) return;
		this.finished = true;
		const { state, suffix, pos, blockLen } = this;
		state[pos] ^= suffix;
		if ((suffix & 128) !== 0 && pos === blockLen - 1) this.keccak();
		state[blockLen - 1] ^= 128;
		this.keccak();
	}
	writeInto(out) {
		aexists(this, false);
		abytes$1(out);
		this.finish();
		const bufferOut = this.state;
		const { blockLen } = this;
		for (let pos = 0, len = out.length; pos < len;) {
			if (this.posOut >= blockLen) this.keccak();
			const take = Math.min(blockLen - this.posOut, len - pos);
			out.set(bufferOut.subarray(this.posOut, this.posOut + take), pos);
			this.posOut += take;
			pos += take;
		}
		return out;
	}
	xofInto(out) {
		if (!this.enableXOF) throw new Error("XOF is not enabled");
		return this.writeInto(out);
	}
	xof(bytes) {
		anumber$1(bytes);
		return this.xofInto(new Uint8Array(bytes));
	}
	digestInto(out) {
		aoutput(out, this);
		if (this.finished) throw new Error("digest() was already called");
		this.writeInto(out.length === this.outputLen ? out : out.subarray(0, this.outputLen));
		this.destroy();
	}
	digest() {
		const out = new Uint8Array(this.outputLen);
		this.digestInto(out);
		return out;
	}
	destroy() {
		this.destroyed = true;
		clean(this.state);
	}
	_cloneInto(to) {
		const { blockLen, suffix, outputLen, rounds, enableXOF } = this;
		to ||= new Keccak(blockLen, suffix, outputLen, enableXOF, rounds);
		to.blockLen = blockLen;
		to.state32.set(this.state32);
		to.pos = this.pos;
		to.posOut = this.posOut;
		to.finished = this.finished;
		to.rounds = rounds;
		to.suffix = suffix;
		to.outputLen = outputLen;
		to.enableXOF = enableXOF;
		to.canXOF = this.canXOF;
		to.destroyed = this.destroyed;
		return to;
	}
};
var genShake = (suffix, blockLen, outputLen, info = {}) => createHasher((opts = {}) => {
	opts = checkOpts({}, opts);
	return new Keccak(blockLen, suffix, opts.dkLen === void 0 ? outputLen : opts.dkLen, true);
}, info);
var shake128 = /* @__PURE__ */ genShake(31, 168, 16, /* @__PURE__ */ oidNist(11));
var shake256 = /* @__PURE__ */ genShake(31, 136, 32, /* @__PURE__ */ oidNist(12));
// node_modules/@noble/curves/abstract/modular.js
/*! noble-curves - MIT License (c) 2022 Paul Miller (paulmillr.com) */
var _0n$3 = /* @__PURE__ */ BigInt(0);
var _1n$3 = /* @__PURE__ */ BigInt(1);
var _2n$2 = /* @__PURE__ */ BigInt(2);
var _3n$1 = /* @__PURE__ */ BigInt(3);
var _4n$3 = /* @__PURE__ */ BigInt(4);
var _5n = /* @__PURE__ */ BigInt(5);
var _7n = /* @__PURE__ */ BigInt(7);
var _8n$1 = /* @__PURE__ */ BigInt(8);
var _9n = /* @__PURE__ */ BigInt(9);
var _15n = /* @__PURE__ */ BigInt(15);
var _16n = /* @__PURE__ */ BigInt(16);
var POW_WINDOWED_MIN = /* @__PURE__ */ BigInt("0x10000000000000000");
function mod(a, b) {
	if (b <= _0n$3) throw new Error("mod: expected positive modulus, got " + b);
	const result = a % b;
	return result >= _0n$3 ? result : b + result;
}
function pow(num, power, modulo) {
	if (modulo <= _1n$3) throw new Error("pow: expected modulus > 1, got " + modulo);
	if (typeof power !== "bigint") throw new TypeError("invalid exponent: expected bigint, got " + typeof power);
	if (power < _0n$3) throw new Error("invalid exponent, negatives unsupported");
	if (power === _0n$3) return _1n$3;
	if (power === _1n$3) return num;
	let d = num % modulo;
	if (d < _0n$3) d += modulo;
	if (power < POW_WINDOWED_MIN) {
		let p = _1n$3;
		while (power > _0n$3) {
			if (power & _1n$3) p = p * d % modulo;
			d = d * d % modulo;
			power >>= _1n$3;
		}
		return p;
	}
	const digits = [];
	while (power > _0n$3) {
		digits.push(Number(power & _15n));
		power >>= _4n$3;
	}
	const table = new Array(16);
	table[0] = _1n$3;
	table[1] = d;
	for (let i = 2; i < 16; i++) table[i] = table[i - 1] * d % modulo;
	let p = table[digits[digits.length - 1]];
	for (let w = digits.length - 2; w >= 0; w--) {
		p = p * p % modulo;
		p = p * p % modulo;
		p = p * p % modulo;
		p = p * p % modulo;
		const digit = digits[w];
		if (digit !== 0) p = p * table[digit] % modulo;
	}
	return p;
}
function invert(number, modulo) {
	if (number === _0n$3) throw new Error("invert: expected non-zero number");
	if (modulo <= _1n$3) throw new Error("invert: expected modulus > 1, got " + modulo);
	let a = mod(number, modulo);
	let b = modulo;
	let x = _0n$3, u = _1n$3;
	while (a !== _0n$3) {
		const q = b / a;
		const r = b - a * q;
		const m = x - u * q;
		b = a, a = r, x = u, u = m;
	}
	if (b !== _1n$3) throw new Error("invert: does not exist");
	return mod(x, modulo);
}
function assertIsSquare(Fp, root, n) {
	const F = Fp;
	if (!F.eql(F.sqr(root), n)) throw new Error("Cannot find square root");
}
function aoddModulus(order, fnName) {
	if ((order & _1n$3) === _0n$3) throw new Error(fnName + ": expected odd modulus, got " + order);
}
function sqrt3mod4(Fp, n) {
	const F = Fp;
	const p1div4 = (F.ORDER + _1n$3) / _4n$3;
	const root = F.pow(n, p1div4);
	assertIsSquare(F, root, n);
	return root;
}
function sqrt5mod8(Fp, n) {
	const F = Fp;
	const p5div8 = (F.ORDER - _5n) / _8n$1;
	const n2 = F.mul(n, _2n$2);
	const v = F.pow(n2, p5div8);
	const nv = F.mul(n, v);
	const i = F.mul(F.mul(nv, _2n$2), v);
	const root = F.mul(nv, F.sub(i, F.ONE));
	assertIsSquare(F, root, n);
	return root;
}
function sqrt9mod16(P) {
	const Fp_ = Field(P);
	const tn = tonelliShanks(P);
	const c1 = tn(Fp_, Fp_.neg(Fp_.ONE));
	const c2 = tn(Fp_, c1);
	const c3 = tn(Fp_, Fp_.neg(c1));
	const c4 = (P + _7n) / _16n;
	return ((Fp, n) => {
		const F = Fp;
		let tv1 = F.pow(n, c4);
		let tv2 = F.mul(tv1, c1);
		const tv3 = F.mul(tv1, c2);
		const tv4 = F.mul(tv1, c3);
		const e1 = F.eql(F.sqr(tv2), n);
		const e2 = F.eql(F.sqr(tv3), n);
		tv1 = F.cmov(tv1, tv2, e1);
		tv2 = F.cmov(tv4, tv3, e2);
		const e3 = F.eql(F.sqr(tv2), n);
		const root = F.cmov(tv1, tv2, e3);
		assertIsSquare(F, root, n);
		return root;
	});
}
function tonelliShanks(P) {
	if (P < _3n$1) throw new Error("sqrt is not defined for small field");
	aoddModulus(P, "tonelliShanks");
	let Q = P - _1n$3;
	let S = 0;
	while (Q % _2n$2 === _0n$3) {
		Q /= _2n$2;
		S++;
	}
	let Z = _2n$2;
	const _Fp = Field(P);
	while (FpLegendre(_Fp, Z) === 1) if (Z++ > 1e3) throw new Error("Cannot find square root: probably non-prime P");
	if (S === 1) return sqrt3mod4;
	let cc = _Fp.pow(Z, Q);
	const Q1div2 = (Q + _1n$3) / _2n$2;
	return function tonelliSlow(Fp, n) {
		const F = Fp;
		if (F.is0(n)) return n;
		if (FpLegendre(F, n) !== 1) throw new Error("Cannot find square root");
		let M = S;
		let c = F.mul(F.ONE, cc);
		let t = F.pow(n, Q);
		let R = F.pow(n, Q1div2);
		while (!F.eql(t, F.ONE)) {
			if (F.is0(t)) throw new Error("Cannot find square root: probably non-prime P");
			let i = 1;
			let t_tmp = F.sqr(t);
			while (!F.eql(t_tmp, F.ONE)) {
				i++;
				t_tmp = F.sqr(t_tmp);
				if (i === M) throw new Error("Cannot find square root");
			}
			const exponent = _1n$3 << BigInt(M - i - 1);
			const b = F.pow(c, exponent);
			M = i;
			c = F.sqr(b);
			t = F.mul(t, c);
			R = F.mul(R, b);
		}
		return R;
	};
}
function FpSqrt(P) {
	aoddModulus(P, "Fp.sqrt");
	if (P % _4n$3 === _3n$1) return sqrt3mod4;
	if (P % _8n$1 === _5n) return sqrt5mod8;
	if (P % _16n === _9n) return sqrt9mod16(P);
	return tonelliShanks(P);
}
var FIELD_FIELDS = [
	"create",
	"isValid",
	"is0",
	"neg",
	"inv",
	"sqrt",
	"sqr",
	"eql",
	"add",
	"sub",
	"mul",
	"pow",
	"div",
	"addN",
	"subN",
	"mulN",
	"sqrN"
];
function validateField(field) {
	aobject$1(field, "field");
	if (typeof field.ORDER !== "bigint") throw new TypeError("param \"ORDER\" is invalid: expected bigint, got " + typeof field.ORDER);
	asafenumber(field.BYTES, "BYTES");
	asafenumber(field.BITS, "BITS");
	for (const name of FIELD_FIELDS) afunction(field[name], "field." + name);
	if (field.BYTES < 1 || field.BITS < 1) throw new Error("invalid field: expected BYTES/BITS > 0");
	if (field.ORDER <= _1n$3) throw new Error("invalid field: expected ORDER > 1, got " + field.ORDER);
	return field;
}
function FpInvertBatch(Fp, nums, passZero = false) {
	validateField(Fp);
	aarray$1(nums, "nums");
	abool(passZero, "passZero");
	const F = Fp;
	const inverted = new Array(nums.length).fill(passZero ? F.ZERO : void 0);
	const multipliedAcc = nums.reduce((acc, num, i) => {
		if (F.is0(num)) return acc;
		inverted[i] = acc;
		return F.mul(acc, num);
	}, F.ONE);
	const invertedAcc = F.inv(multipliedAcc);
	nums.reduceRight((acc, num, i) => {
		if (F.is0(num)) return acc;
		inverted[i] = F.mul(acc, inverted[i]);
		return F.mul(acc, num);
	}, invertedAcc);
	return inverted;
}
function FpLegendre(Fp, n) {
	validateField(Fp);
	const F = Fp;
	aoddModulus(F.ORDER, "FpLegendre");
	const p1mod2 = (F.ORDER - _1n$3) / _2n$2;
	const powered = F.pow(n, p1mod2);
	const yes = F.eql(powered, F.ONE);
	const zero = F.eql(powered, F.ZERO);
	const no = F.eql(powered, F.neg(F.ONE));
	if (!yes && !zero && !no) throw new Error("invalid Legendre symbol result");
	return yes ? 1 : zero ? 0 : -1;
}
function nLength(n, nBitLength) {
	if (nBitLength !== void 0) anumber(nBitLength);
	if (n <= _0n$3) throw new Error("invalid n length: expected positive n, got " + n);
	if (nBitLength !== void 0 && nBitLength < 1) throw new Error("invalid n length: expected positive bit length, got " + nBitLength);
	const bits = bitLen(n);
	if (nBitLength !== void 0 && nBitLength < bits) throw new Error(`invalid n length: expected nBitLength (${nBitLength}) >= bitLen(n) (${bits})`);
	const _nBitLength = nBitLength !== void 0 ? nBitLength : bits;
	return {
		nBitLength: _nBitLength,
		nByteLength: Math.ceil(_nBitLength / 8)
	};
}
var FIELD_SQRT = /* @__PURE__ */ new WeakMap();
var _Field = class {
	ORDER;
	BITS;
	BYTES;
	isLE;
	ZERO = _0n$3;
	ONE = _1n$3;
	_lengths;
	_mod;
	constructor(ORDER, opts = {}) {
		if (ORDER <= _1n$3) throw new Error("invalid field: expected ORDER > 1, got " + ORDER);
		let _nbitLength = void 0;
		this.isLE = false;
		if (opts != null && typeof opts === "object") {
			if (typeof opts.BITS === "number") _nbitLength = opts.BITS;
			if (typeof opts.sqrt === "function") Object.defineProperty(this, "sqrt", {
				value: opts.sqrt,
				enumerable: true
			});
			if (typeof opts.isLE === "boolean") this.isLE = opts.isLE;
			if (opts.allowedLengths) this._lengths = Object.freeze(opts.allowedLengths.slice());
			if (typeof opts.modFromBytes === "boolean") this._mod = opts.modFromBytes;
		}
		const { nBitLength, nByteLength } = nLength(ORDER, _nbitLength);
		if (nByteLength > 2048) throw new Error("invalid field: expected ORDER of <= 2048 bytes");
		this.ORDER = ORDER;
		this.BITS = nBitLength;
		this.BYTES = nByteLength;
		Object.freeze(this);
	}
	create(num) {
		return mod(num, this.ORDER);
	}
	isValid(num) {
		if (typeof num !== "bigint") throw new TypeError("invalid field element: expected bigint, got " + typeof num);
		return _0n$3 <= num && num < this.ORDER;
	}
	is0(num) {
		return num === _0n$3;
	}
	isValidNot0(num) {
		return !this.is0(num) && this.isValid(num);
	}
	isOdd(num) {
		return (num & _1n$3) === _1n$3;
	}
	neg(num) {
		return mod(-num, this.ORDER);
	}
	eql(lhs, rhs) {
		return lhs === rhs;
	}
	sqr(num) {
		return mod(num * num, this.ORDER);
	}
	add(lhs, rhs) {
		return mod(lhs + rhs, this.ORDER);
	}
	sub(lhs, rhs) {
		return mod(lhs - rhs, this.ORDER);
	}
	mul(lhs, rhs) {
		return mod(lhs * rhs, this.ORDER);
	}
	pow(num, power) {
		return pow(num, power, this.ORDER);
	}
	div(lhs, rhs) {
		return mod(lhs * invert(rhs, this.ORDER), this.ORDER);
	}
	sqrN(num) {
		return num * num;
	}
	addN(lhs, rhs) {
		return lhs + rhs;
	}
	subN(lhs, rhs) {
		return lhs - rhs;
	}
	mulN(lhs, rhs) {
		return lhs * rhs;
	}
	inv(num) {
		return invert(num, this.ORDER);
	}
	sqrt(num) {
		let sqrt = FIELD_SQRT.get(this);
		if (!sqrt) FIELD_SQRT.set(this, sqrt = FpSqrt(this.ORDER));
		return sqrt(this, num);
	}
	toBytes(num) {
		return this.isLE ? numberToBytesLE(num, this.BYTES) : numberToBytesBE(num, this.BYTES);
	}
	fromBytes(bytes, skipValidation = false) {
		abytes(bytes);
		const { _lengths: allowedLengths, BYTES, isLE, ORDER, _mod: modFromBytes } = this;
		if (allowedLengths) {
			if (bytes.length < 1 || !allowedLengths.includes(bytes.length) || bytes.length > BYTES) throw new Error("Field.fromBytes: expected " + allowedLengths + " bytes, got " + bytes.length);
			const padded = new Uint8Array(BYTES);
			padded.set(bytes, isLE ? 0 : padded.length - bytes.length);
			bytes = padded;
		}
		if (bytes.length !== BYTES) throw new Error("Field.fromBytes: expected " + BYTES + " bytes, got " + bytes.length);
		let scalar = isLE ? bytesToNumberLE(bytes) : bytesToNumberBE(bytes);
		if (modFromBytes) scalar = mod(scalar, ORDER);
		if (!skipValidation) {
			if (!this.isValid(scalar)) throw new Error("invalid field element: outside of range 0..ORDER");
		}
		return scalar;
	}
	invertBatch(lst) {
		return FpInvertBatch(this, lst, true);
	}
	cmov(a, b, condition) {
		abool(condition, "condition");
		return condition ? b : a;
	}
};
function Field(ORDER, opts = {}) {
	Object.freeze(_Field.prototype);
	return new _Field(ORDER, opts);
}
// node_modules/@noble/curves/abstract/fft.js
function checkU32(n, title = "n") {
	if (typeof n !== "number") throw new TypeError(`wrong u32 integer "${title}": expected number, got type=${typeof n}`);
	if (!Number.isSafeInteger(n) || n < 0 || n > 4294967295) throw new RangeError(`wrong u32 integer "${title}": expected 0..4294967295, got ${n}`);
	return n;
}
function isPowerOfTwo(x) {
	checkU32(x, "x");
	return (x & x - 1) === 0 && x !== 0;
}
function reverseBits(n, bits) {
	checkU32(n);
	if (typeof bits !== "number") throw new TypeError("\"bits\" expected number, got type=" + typeof bits);
	if (!Number.isSafeInteger(bits) || bits < 0 || bits > 32) throw new Error(`expected integer 0 <= bits <= 32, got ${bits}`);
	let reversed = 0;
	for (let i = 0; i < bits; i++, n >>>= 1) reversed = reversed << 1 | n & 1;
	return reversed >>> 0;
}
function log2(n) {
	checkU32(n);
	return 31 - Math.clz32(n);
}
function bitReversalInplace(values) {
	if (!values || typeof values !== "object" || typeof values.length !== "number") throw new TypeError("\"values\" expected array-like, got type=" + typeof values);
	const n = values.length;
	if (!isPowerOfTwo(n)) throw new Error("expected positive power-of-two length, got " + n);
	const bits = log2(n);
	for (let i = 0; i < n; i++) {
		const j = reverseBits(i, bits);
		if (i < j) {
			const tmp = values[i];
			values[i] = values[j];
			values[j] = tmp;
		}
	}
	return values;
}
var FFTCore = (F, coreOpts) => {
	validateObject(coreOpts, {
		N: "number",
		roots: "object",
		dit: "boolean"
	}, {
		invertButterflies: "boolean",
		skipStages: "number",
		brp: "boolean"
	}, "coreOpts");
	const { N, roots, dit, invertButterflies = false, skipStages = 0, brp = true } = coreOpts;
	checkU32(N, "coreOpts.N");
	const bits = log2(N);
	if (!isPowerOfTwo(N)) throw new Error("FFT: Polynomial size should be power of two");
	checkU32(skipStages, "coreOpts.skipStages");
	const maxSkipStages = bits === 0 ? 0 : bits - 1;
	if (skipStages > maxSkipStages) throw new Error(`FFT: wrong skipStages: expected 0 <= skipStages <= ${maxSkipStages}`);
	if (roots.length !== N) throw new Error(`FFT: wrong roots length: expected ${N}, got ${roots.length}`);
	const isDit = dit !== invertButterflies;
	return (values) => {
		if (values.length !== N) throw new Error("FFT: wrong Polynomial length");
		if (dit && brp) bitReversalInplace(values);
		for (let i = 0, g = 1; i < bits - skipStages; i++) {
			const s = dit ? i + 1 + skipStages : bits - i;
			const m = 1 << s;
			const m2 = m >> 1;
			const stride = N >> s;
			for (let k = 0; k < N; k += m) for (let j = 0, grp = g++; j < m2; j++) {
				const rootPos = invertButterflies ? dit ? N - grp : grp : j * stride;
				const i0 = k + j;
				const i1 = k + j + m2;
				const omega = roots[rootPos];
				const b = values[i1];
				const a = values[i0];
				if (isDit) {
					const t = F.mul(b, omega);
					values[i0] = F.add(a, t);
					values[i1] = F.sub(a, t);
				} else if (invertButterflies) {
					values[i0] = F.add(b, a);
					values[i1] = F.mul(F.sub(b, a), omega);
				} else {
					values[i0] = F.add(a, b);
					values[i1] = F.mul(F.sub(a, b), omega);
				}
			}
		}
		if (!dit && brp) bitReversalInplace(values);
		return values;
	};
};
// node_modules/@noble/post-quantum/utils.js
/*! noble-post-quantum - MIT License (c) 2024 Paul Miller (paulmillr.com) */
var abytesDoc = abytes$1;
function aarray(item, title, inner = () => {}) {
	if (!Array.isArray(item)) throw new TypeError(`"${title}" expected array, got type=${typeof item}`);
	for (let i = 0; i < item.length; i++) inner(item[i], `${title}[${i}]`);
	return item;
}
function aobject(value, title = "object") {
	if (value === null || typeof value !== "object" || Array.isArray(value)) throw new TypeError(title === "object" ? "expected valid options object" : `"${title}" expected object, got type=${typeof value}`);
	return value;
}
function equalBytes(a, b) {
	a = abytes$1(a);
	b = abytes$1(b);
	if (a.length !== b.length) return false;
	let diff = 0;
	for (let i = 0; i < a.length; i++) diff |= a[i] ^ b[i];
	return diff === 0;
}
function validateOpts(opts) {
	if (isBytes$1(opts)) throw new TypeError("\"opts\" expected object, got Uint8Array");
	aobject(opts, "opts");
	const proto = Object.getPrototypeOf(opts);
	if (proto !== null && proto !== Object.prototype) throw new TypeError("\"opts\" expected a plain object");
}
var VER_OPT_KEYS = /* @__PURE__ */ Object.freeze(["context"]);
function checkOptKeys(opts, allowed) {
	validateOpts(opts);
	const normalized = Object.assign(Object.create(null), opts);
	for (const [k, v] of Object.entries(normalized)) {
		if (v === void 0) continue;
		if (!allowed.includes(k)) throw new TypeError("unexpected option \"" + String(k) + "\"; expected one of: " + allowed.join(", "));
	}
	return Object.freeze(normalized);
}
function validateVerOpts(opts, allowed = VER_OPT_KEYS) {
	const normalized = checkOptKeys(opts, allowed);
	if (normalized.context !== void 0) abytes$1(normalized.context, void 0, "opts.context");
	return normalized;
}
function splitCoder(label, ...lengths) {
	const getLength = (c) => typeof c === "number" ? c : c.bytesLen;
	const bytesLen = lengths.reduce((sum, a) => sum + getLength(a), 0);
	return {
		bytesLen,
		encode: (bufs) => {
			const res = new Uint8Array(bytesLen);
			for (let i = 0, pos = 0; i < lengths.length; i++) {
				const c = lengths[i];
				const l = getLength(c);
				const b = typeof c === "number" ? bufs[i] : c.encode(bufs[i]);
				abytes$1(b, l, label);
				res.set(b, pos);
				if (typeof c !== "number") b.fill(0);
				pos += l;
			}
			return res;
		},
		decode: (buf) => {
			abytes$1(buf, bytesLen, label);
			const res = [];
			for (const c of lengths) {
				const l = getLength(c);
				const b = buf.subarray(0, l);
				res.push(typeof c === "number" ? b : c.decode(b));
				buf = buf.subarray(l);
			}
			return res;
		}
	};
}
function vecCoder(c, vecLen) {
	const coder = c;
	const bytesLen = vecLen * coder.bytesLen;
	return {
		bytesLen,
		encode: (u) => {
			const uArr = aarray(u, "u");
			if (uArr.length !== vecLen) throw new RangeError(`vecCoder.encode: wrong length=${uArr.length}. Expected: ${vecLen}`);
			const res = new Uint8Array(bytesLen);
			for (let i = 0, pos = 0; i < uArr.length; i++) {
				const b = coder.encode(uArr[i]);
				res.set(b, pos);
				b.fill(0);
				pos += b.length;
			}
			return res;
		},
		decode: (a) => {
			abytes$1(a, bytesLen);
			const r = [];
			for (let i = 0; i < a.length; i += coder.bytesLen) r.push(coder.decode(a.subarray(i, i + coder.bytesLen)));
			return r;
		}
	};
}
function cleanBytes(...list) {
	for (const t of list) if (Array.isArray(t)) for (const b of t) b.fill(0);
	else t.fill(0);
}
function getMask(bits) {
	anumber$1(bits, "bits");
	if (bits > 32) throw new RangeError("\"bits\" expected <= 32, got " + bits);
	return bits === 32 ? 4294967295 : ~(-1 << bits) >>> 0;
}
var EMPTY$1 = /* @__PURE__ */ Uint8Array.of();
function getMessage(msg, ctx = EMPTY$1) {
	abytes$1(msg, void 0, "msg");
	abytes$1(ctx, void 0, "ctx");
	if (ctx.length > 255) throw new RangeError("context should be 255 bytes or less");
	return concatBytes$1(new Uint8Array([0, ctx.length]), ctx, msg);
}
// node_modules/@noble/post-quantum/_crystals.js
/*! noble-post-quantum - MIT License (c) 2024 Paul Miller (paulmillr.com) */
var genCrystals = (opts) => {
	const { newPoly, N, Q, F, ROOT_OF_UNITY, brvBits, isKyber } = opts;
	const mod = (a, modulo = Q) => {
		const result = a % modulo | 0;
		return (result >= 0 ? result | 0 : modulo + result | 0) | 0;
	};
	const smod = (a, modulo = Q) => {
		const r = mod(a, modulo) | 0;
		return (r > modulo >> 1 ? r - modulo | 0 : r) | 0;
	};
	function getZettas() {
		const out = newPoly(N);
		for (let i = 0; i < N; i++) {
			const b = reverseBits(i, brvBits);
			const p = BigInt(ROOT_OF_UNITY) ** BigInt(b) % BigInt(Q);
			out[i] = Number(p) | 0;
		}
		return out;
	}
	const nttZetas = getZettas();
	const inv = (_a) => {
		throw new Error("not implemented");
	};
	const field = isKyber ? {
		add: (a, b) => {
			const r = a + b | 0;
			return r >= Q ? r - Q | 0 : r;
		},
		sub: (a, b) => {
			const r = a - b | 0;
			return r < 0 ? r + Q | 0 : r;
		},
		mul: (a, b) => mod((a | 0) * (b | 0)) | 0,
		inv
	} : {
		add: (a, b) => mod((a | 0) + (b | 0)) | 0,
		sub: (a, b) => mod((a | 0) - (b | 0)) | 0,
		mul: (a, b) => mod((a | 0) * (b | 0)) | 0,
		inv
	};
	const nttOpts = {
		N,
		roots: nttZetas,
		invertButterflies: true,
		skipStages: isKyber ? 1 : 0,
		brp: false
	};
	const dif = FFTCore(field, {
		dit: false,
		...nttOpts
	});
	const dit = FFTCore(field, {
		dit: true,
		...nttOpts
	});
	const NTT = {
		encode: (r) => {
			return dif(r);
		},
		decode: (r) => {
			dit(r);
			for (let i = 0; i < r.length; i++) r[i] = mod(F * r[i]);
			return r;
		}
	};
	const bitsCoder = (d, c) => {
		for (let i = 0, bufLen = 0; i < N; i++) {
			bufLen += d;
			if (bufLen > 32) getMask(bufLen);
			bufLen %= 8;
		}
		const mask = getMask(d);
		const bytesLen = d * (N / 8);
		return {
			bytesLen,
			encode: (poly_) => {
				const poly = poly_;
				const r = new Uint8Array(bytesLen);
				for (let i = 0, buf = 0, bufLen = 0, pos = 0; i < poly.length; i++) {
					buf |= (c.encode(poly[i]) & mask) << bufLen;
					bufLen += d;
					for (; bufLen >= 8; bufLen -= 8, buf >>= 8) r[pos++] = buf & 255;
				}
				return r;
			},
			decode: (bytes) => {
				const r = newPoly(N);
				for (let i = 0, buf = 0, bufLen = 0, pos = 0; i < bytes.length; i++) {
					buf |= bytes[i] << bufLen;
					bufLen += 8;
					for (; bufLen >= d; bufLen -= d, buf >>= d) r[pos++] = c.decode(buf & mask);
				}
				return r;
			}
		};
	};
	return {
		mod,
		smod,
		nttZetas,
		NTT: {
			encode: (r) => NTT.encode(r),
			decode: (r) => NTT.decode(r)
		},
		bitsCoder
	};
};
var createXofShake = (shake) => (seed, blockLen) => {
	if (!blockLen) blockLen = shake.blockLen;
	const _seed = new Uint8Array(seed.length + 2);
	_seed.set(seed);
	const seedLen = seed.length;
	const buf = new Uint8Array(blockLen);
	let h = shake.create({});
	let calls = 0;
	let xofs = 0;
	return {
		stats: () => ({
			calls,
			xofs
		}),
		get: (x, y) => {
			_seed[seedLen + 0] = x;
			_seed[seedLen + 1] = y;
			h.destroy();
			h = shake.create({}).update(_seed);
			calls++;
			return () => {
				xofs++;
				return h.xofInto(buf);
			};
		},
		clean: () => {
			h.destroy();
			cleanBytes(buf, _seed);
		}
	};
};
var XOF128 = /* @__PURE__ */ createXofShake(shake128);
var XOF256 = /* @__PURE__ */ createXofShake(shake256);
// node_modules/@noble/post-quantum/ml-dsa.js
/*! noble-post-quantum - MIT License (c) 2024 Paul Miller (paulmillr.com) */
var INTERNAL_VER_OPT_KEYS = /* @__PURE__ */ Object.freeze(["externalMu"]);
function validateInternalOpts(opts, allowed) {
	const normalized = checkOptKeys(opts, allowed);
	if (normalized.externalMu !== void 0) abool(normalized.externalMu, "opts.externalMu");
	return normalized;
}
var N = 256;
var Q = 8380417;
var ROOT_OF_UNITY = 1753;
var F = 8347681;
var D = 13;
var GAMMA2_1 = Math.floor(95232) | 0;
var GAMMA2_2 = Math.floor(261888) | 0;
var PARAMS = /* @__PURE__ */ (() => Object.freeze({
	2: Object.freeze({
		K: 4,
		L: 4,
		D,
		GAMMA1: 2 ** 17,
		GAMMA2: GAMMA2_1,
		TAU: 39,
		ETA: 2,
		OMEGA: 80
	}),
	3: Object.freeze({
		K: 6,
		L: 5,
		D,
		GAMMA1: 2 ** 19,
		GAMMA2: GAMMA2_2,
		TAU: 49,
		ETA: 4,
		OMEGA: 55
	}),
	5: Object.freeze({
		K: 8,
		L: 7,
		D,
		GAMMA1: 2 ** 19,
		GAMMA2: GAMMA2_2,
		TAU: 60,
		ETA: 2,
		OMEGA: 75
	})
}))();
var newPoly = (n) => new Int32Array(n);
var crystals = /* @__PURE__ */ genCrystals({
	N,
	Q,
	F,
	ROOT_OF_UNITY,
	newPoly,
	isKyber: false,
	brvBits: 8
});
var id = (n) => n;
var polyCoder = (d, compress = id, verify = id) => crystals.bitsCoder(d, {
	encode: (i) => compress(verify(i)),
	decode: (i) => verify(compress(i))
});
var polyAdd = (a_, b_) => {
	const a = a_;
	const b = b_;
	for (let i = 0; i < a.length; i++) a[i] = crystals.mod(a[i] + b[i]);
	return a;
};
var polySub = (a_, b_) => {
	const a = a_;
	const b = b_;
	for (let i = 0; i < a.length; i++) a[i] = crystals.mod(a[i] - b[i]);
	return a;
};
var polyShiftl = (p_) => {
	const p = p_;
	for (let i = 0; i < N; i++) p[i] <<= D;
	return p;
};
var polyChknorm = (p_, B) => {
	const p = p_;
	for (let i = 0; i < N; i++) if (Math.abs(crystals.smod(p[i])) >= B) return true;
	return false;
};
var MultiplyNTTs = (a_, b_) => {
	const a = a_;
	const b = b_;
	const c = newPoly(N);
	for (let i = 0; i < a.length; i++) c[i] = crystals.mod(a[i] * b[i]);
	return c;
};
function RejNTTPoly(xof_) {
	const xof = xof_;
	const r = newPoly(N);
	for (let j = 0; j < N;) {
		const b = xof();
		if (b.length % 3) throw new Error("RejNTTPoly: unaligned block");
		for (let i = 0; j < N && i <= b.length - 3; i += 3) {
			const t = (b[i + 0] | b[i + 1] << 8 | b[i + 2] << 16) & 8388607;
			if (t < Q) r[j++] = t;
		}
	}
	return r;
}
function getDilithium(opts_) {
	const opts = opts_;
	const { K, L, GAMMA1, GAMMA2, TAU, ETA, OMEGA } = opts;
	const { CRH_BYTES, TR_BYTES, C_TILDE_BYTES, XOF128, XOF256, securityLevel } = opts;
	if (![2, 4].includes(ETA)) throw new Error("Wrong ETA");
	if (![1 << 17, 1 << 19].includes(GAMMA1)) throw new Error("Wrong GAMMA1");
	if (![GAMMA2_1, GAMMA2_2].includes(GAMMA2)) throw new Error("Wrong GAMMA2");
	const BETA = TAU * ETA;
	const decompose = (r) => {
		const rPlus = crystals.mod(r);
		const r0 = crystals.smod(rPlus, 2 * GAMMA2) | 0;
		if (rPlus - r0 === 8380416) return {
			r1: 0,
			r0: r0 - 1 | 0
		};
		return {
			r1: Math.floor((rPlus - r0) / (2 * GAMMA2)) | 0,
			r0
		};
	};
	const HINT_M = Math.floor(8380416 / (2 * GAMMA2));
	const UseHint = (h, r) => {
		const { r1, r0 } = decompose(r);
		if (h === 1) return r0 > 0 ? crystals.mod(r1 + 1, HINT_M) | 0 : crystals.mod(r1 - 1, HINT_M) | 0;
		return r1 | 0;
	};
	const hintCoder = {
		bytesLen: OMEGA + K,
		encode: (h_) => {
			const h = h_;
			if (h === false) throw new Error("hint.encode: hint is false");
			const res = new Uint8Array(OMEGA + K);
			for (let i = 0, k = 0; i < K; i++) {
				for (let j = 0; j < N; j++) if (h[i][j] !== 0) res[k++] = j;
				res[OMEGA + i] = k;
			}
			return res;
		},
		decode: (buf) => {
			const h = [];
			let k = 0;
			for (let i = 0; i < K; i++) {
				const hi = newPoly(N);
				if (buf[OMEGA + i] < k || buf[OMEGA + i] > OMEGA) return false;
				for (let j = k; j < buf[OMEGA + i]; j++) {
					if (j > k && buf[j] <= buf[j - 1]) return false;
					hi[buf[j]] = 1;
				}
				k = buf[OMEGA + i];
				h.push(hi);
			}
			for (let j = k; j < OMEGA; j++) if (buf[j] !== 0) return false;
			return h;
		}
	};
	const T1Coder = polyCoder(10);
	const ZCoder = polyCoder(GAMMA1 === 1 << 17 ? 18 : 20, (i) => crystals.smod(GAMMA1 - i));
	const W1Vec = vecCoder(polyCoder(GAMMA2 === GAMMA2_1 ? 6 : 4), K);
	const publicCoder = splitCoder("publicKey", 32, vecCoder(T1Coder, K));
	const sigCoder = splitCoder("signature", C_TILDE_BYTES, vecCoder(ZCoder, L), hintCoder);
	const SampleInBall = (seed) => {
		const pre = newPoly(N);
		const s = shake256.create({}).update(seed);
		const buf = new Uint8Array(shake256.blockLen);
		s.xofInto(buf);
		const masks = buf.slice(0, 8);
		for (let i = N - TAU, pos = 8, maskPos = 0, maskBit = 0; i < N; i++) {
			let b = i + 1;
			for (; b > i;) {
				b = buf[pos++];
				if (pos < shake256.blockLen) continue;
				s.xofInto(buf);
				pos = 0;
			}
			pre[i] = pre[b];
			pre[b] = 1 - ((masks[maskPos] >> maskBit++ & 1) << 1);
			if (maskBit >= 8) {
				maskPos++;
				maskBit = 0;
			}
		}
		return pre;
	};
	const polyUseHint = (u_, h_) => {
		const u = u_;
		const h = h_;
		for (let i = 0; i < N; i++) u[i] = UseHint(h[i], u[i]);
		return u;
	};
	const internal = Object.freeze({
		info: Object.freeze({ type: "internal-ml-dsa" }),
		verify: (sig, msg, publicKey, opts = {}) => {
			opts = validateInternalOpts(opts, INTERNAL_VER_OPT_KEYS);
			const { externalMu = false } = opts;
			if (externalMu) abytesDoc(msg, CRH_BYTES, "mu");
			const [rho, t1] = publicCoder.decode(publicKey);
			const tr = shake256(publicKey, { dkLen: TR_BYTES });
			if (sig.length !== sigCoder.bytesLen) return false;
			const [cTilde, z, h] = sigCoder.decode(sig);
			if (h === false) return false;
			for (let i = 0; i < L; i++) if (polyChknorm(z[i], GAMMA1 - BETA)) return false;
			const mu = externalMu ? msg : shake256.create({ dkLen: CRH_BYTES }).update(tr).update(msg).digest();
			const c = crystals.NTT.encode(SampleInBall(cTilde));
			const zNtt = z.map((i) => i.slice());
			for (let i = 0; i < L; i++) crystals.NTT.encode(zNtt[i]);
			const wTick1 = [];
			const xof = XOF128(rho);
			for (let i = 0; i < K; i++) {
				const ct12d = MultiplyNTTs(crystals.NTT.encode(polyShiftl(t1[i])), c);
				const Az = newPoly(N);
				for (let j = 0; j < L; j++) polyAdd(Az, MultiplyNTTs(RejNTTPoly(xof.get(j, i)), zNtt[j]));
				const wApprox = crystals.NTT.decode(polySub(Az, ct12d));
				wTick1.push(polyUseHint(wApprox, h[i]));
			}
			xof.clean();
			const c2 = shake256.create({ dkLen: C_TILDE_BYTES }).update(mu).update(W1Vec.encode(wTick1)).digest();
			for (const t of h) if (!(t.reduce((acc, i) => acc + i, 0) <= OMEGA)) return false;
			for (const t of z) if (polyChknorm(t, GAMMA1 - BETA)) return false;
			return equalBytes(cTilde, c2);
		}
	});
	return Object.freeze({
		info: Object.freeze({ type: "ml-dsa" }),
		internal,
		securityLevel,
		verify: (sig, msg, publicKey, opts = {}) => {
			opts = validateVerOpts(opts);
			abytesDoc(sig, void 0, "signature");
			return internal.verify(sig, getMessage(msg, opts.context), publicKey, { externalMu: false });
		}
	});
}
var ml_dsa65 = /* @__PURE__ */ (() => getDilithium({
	...PARAMS[3],
	CRH_BYTES: 64,
	TR_BYTES: 64,
	C_TILDE_BYTES: 48,
	XOF128,
	XOF256,
	securityLevel: 192
}))();
// node_modules/@noble/hashes/_md.js
function Chi(a, b, c) {
	return a & b ^ ~a & c;
}
function Maj(a, b, c) {
	return a & b ^ a & c ^ b & c;
}
var HashMD = class {
	blockLen;
	outputLen;
	canXOF = false;
	padOffset;
	isLE;
	buffer;
	view;
	finished = false;
	length = 0;
	pos = 0;
	destroyed = false;
	constructor(blockLen, outputLen, padOffset, isLE) {
		this.blockLen = blockLen;
		this.outputLen = outputLen;
		this.padOffset = padOffset;
		this.isLE = isLE;
		this.buffer = new Uint8Array(blockLen);
		this.view = createView(this.buffer);
	}
	update(data) {
		aexists(this);
		abytes$1(data);
		const { view, buffer, blockLen } = this;
		const len = data.length;
		let processed = false;
		for (let pos = 0; pos < len;) {
			const take = Math.min(blockLen - this.pos, len - pos);
			if (take === blockLen) {
				const dataView = createView(data);
				for (; blockLen <= len - pos; pos += blockLen) this.process(dataView, pos);
				processed = true;
				continue;
			}
			buffer.set(pos === 0 && take === len ? data : data.subarray(pos, pos + take), this.pos);
			this.pos += take;
			pos += take;
			if (this.pos === blockLen) {
				this.process(view, 0);
				this.pos = 0;
				processed = true;
			}
		}
		this.length += data.length;
		if (processed) this.roundClean();
		return this;
	}
	digestInto(out) {
		aexists(this);
		aoutput(out, this);
		this.finished = true;
		const { buffer, view, blockLen, isLE } = this;
		let { pos } = this;
		buffer[pos++] = 128;
		buffer.fill(0, pos);
		if (this.padOffset > blockLen - pos) {
			this.process(view, 0);
			buffer.fill(0);
		}
		setU64FromNum(view, blockLen - 8, this.length * 8, isLE);
		this.process(view, 0);
		this.roundClean();
		const oview = out === buffer ? view : createView(out);
		const len = this.outputLen;
		const outLen = len / 4;
		const state = this.get();
		if (len % 4 || outLen > state.length) throw new Error("invalid outputLen");
		for (let i = 0; i < outLen; i++) oview.setUint32(4 * i, state[i], isLE);
	}
	digest() {
		const { buffer, outputLen } = this;
		this.digestInto(buffer);
		const res = buffer.slice(0, outputLen);
		this.destroy();
		return res;
	}
	_cloneIntoMeta(to) {
		const { buffer, length, finished, destroyed, pos } = this;
		to.destroyed = destroyed;
		to.finished = finished;
		to.length = length;
		to.pos = pos;
		if (pos) to.buffer.set(buffer);
		return to;
	}
	clone() {
		return this._cloneInto();
	}
};
var SHA256_IV = /* @__PURE__ */ Uint32Array.from([
	1779033703,
	3144134277,
	1013904242,
	2773480762,
	1359893119,
	2600822924,
	528734635,
	1541459225
]);
var SHA512_IV = /* @__PURE__ */ Uint32Array.from([
	1779033703,
	4089235720,
	3144134277,
	2227873595,
	1013904242,
	4271175723,
	2773480762,
	1595750129,
	1359893119,
	2917565137,
	2600822924,
	725511199,
	528734635,
	4215389547,
	1541459225,
	327033209
]);
// node_modules/@noble/hashes/sha2.js
var SHA256_K = /* @__PURE__ */ Uint32Array.from([
	1116352408,
	1899447441,
	3049323471,
	3921009573,
	961987163,
	1508970993,
	2453635748,
	2870763221,
	3624381080,
	310598401,
	607225278,
	1426881987,
	1925078388,
	2162078206,
	2614888103,
	3248222580,
	3835390401,
	4022224774,
	264347078,
	604807628,
	770255983,
	1249150122,
	1555081692,
	1996064986,
	2554220882,
	2821834349,
	2952996808,
	3210313671,
	3336571891,
	3584528711,
	113926993,
	338241895,
	666307205,
	773529912,
	1294757372,
	1396182291,
	1695183700,
	1986661051,
	2177026350,
	2456956037,
	2730485921,
	2820302411,
	3259730800,
	3345764771,
	3516065817,
	3600352804,
	4094571909,
	275423344,
	430227734,
	506948616,
	659060556,
	883997877,
	958139571,
	1322822218,
	1537002063,
	1747873779,
	1955562222,
	2024104815,
	2227730452,
	2361852424,
	2428436474,
	2756734187,
	3204031479,
	3329325298
]);
var SHA256_W = /* @__PURE__ */ new Uint32Array(64);
var SHA2_32B = class extends HashMD {
	A = 0;
	B = 0;
	C = 0;
	D = 0;
	E = 0;
	F = 0;
	G = 0;
	H = 0;
	constructor(outputLen, IV) {
		super(64, outputLen, 8, false);
		this.A = IV[0] | 0;
		this.B = IV[1] | 0;
		this.C = IV[2] | 0;
		this.D = IV[3] | 0;
		this.E = IV[4] | 0;
		this.F = IV[5] | 0;
		this.G = IV[6] | 0;
		this.H = IV[7] | 0;
	}
	get() {
		const { A, B, C, D, E, F, G, H } = this;
		return [
			A,
			B,
			C,
			D,
			E,
			F,
			G,
			H
		];
	}
	set(A, B, C, D, E, F, G, H) {
		this.A = A | 0;
		this.B = B | 0;
		this.C = C | 0;
		this.D = D | 0;
		this.E = E | 0;
		this.F = F | 0;
		this.G = G | 0;
		this.H = H | 0;
	}
	_cloneInto(to) {
		(to ||= new this.constructor()).set(...this.get());
		return this._cloneIntoMeta(to);
	}
	process(view, offset) {
		for (let i = 0; i < 16; i++, offset += 4) SHA256_W[i] = view.getUint32(offset, false);
		for (let i = 16; i < 64; i++) {
			const W15 = SHA256_W[i - 15];
			const W2 = SHA256_W[i - 2];
			const s0 = rotr(W15, 7) ^ rotr(W15, 18) ^ W15 >>> 3;
			const s1 = rotr(W2, 17) ^ rotr(W2, 19) ^ W2 >>> 10;
			SHA256_W[i] = s1 + SHA256_W[i - 7] + s0 + SHA256_W[i - 16] | 0;
		}
		let { A, B, C, D, E, F, G, H } = this;
		for (let i = 0; i < 64; i++) {
			const sigma1 = rotr(E, 6) ^ rotr(E, 11) ^ rotr(E, 25);
			const T1 = H + sigma1 + Chi(E, F, G) + SHA256_K[i] + SHA256_W[i] | 0;
			const T2 = (rotr(A, 2) ^ rotr(A, 13) ^ rotr(A, 22)) + Maj(A, B, C) | 0;
			H = G;
			G = F;
			F = E;
			E = D + T1 | 0;
			D = C;
			C = B;
			B = A;
			A = T1 + T2 | 0;
		}
		A = A + this.A | 0;
		B = B + this.B | 0;
		C = C + this.C | 0;
		D = D + this.D | 0;
		E = E + this.E | 0;
		F = F + this.F | 0;
		G = G + this.G | 0;
		H = H + this.H | 0;
		this.set(A, B, C, D, E, F, G, H);
	}
	roundClean() {
		clean(SHA256_W);
	}
	destroy() {
		this.destroyed = true;
		this.set(0, 0, 0, 0, 0, 0, 0, 0);
		clean(this.buffer);
	}
};
var _SHA256 = class extends SHA2_32B {
	constructor() {
		super(32, SHA256_IV);
	}
};
var K512 = /* @__PURE__ */ (() => split([
	"0x428a2f98d728ae22",
	"0x7137449123ef65cd",
	"0xb5c0fbcfec4d3b2f",
	"0xe9b5dba58189dbbc",
	"0x3956c25bf348b538",
	"0x59f111f1b605d019",
	"0x923f82a4af194f9b",
	"0xab1c5ed5da6d8118",
	"0xd807aa98a3030242",
	"0x12835b0145706fbe",
	"0x243185be4ee4b28c",
	"0x550c7dc3d5ffb4e2",
	"0x72be5d74f27b896f",
	"0x80deb1fe3b1696b1",
	"0x9bdc06a725c71235",
	"0xc19bf174cf692694",
	"0xe49b69c19ef14ad2",
	"0xefbe4786384f25e3",
	"0x0fc19dc68b8cd5b5",
	"0x240ca1cc77ac9c65",
	"0x2de92c6f592b0275",
	"0x4a7484aa6ea6e483",
	"0x5cb0a9dcbd41fbd4",
	"0x76f988da831153b5",
	"0x983e5152ee66dfab",
	"0xa831c66d2db43210",
	"0xb00327c898fb213f",
	"0xbf597fc7beef0ee4",
	"0xc6e00bf33da88fc2",
	"0xd5a79147930aa725",
	"0x06ca6351e003826f",
	"0x142929670a0e6e70",
	"0x27b70a8546d22ffc",
	"0x2e1b21385c26c926",
	"0x4d2c6dfc5ac42aed",
	"0x53380d139d95b3df",
	"0x650a73548baf63de",
	"0x766a0abb3c77b2a8",
	"0x81c2c92e47edaee6",
	"0x92722c851482353b",
	"0xa2bfe8a14cf10364",
	"0xa81a664bbc423001",
	"0xc24b8b70d0f89791",
	"0xc76c51a30654be30",
	"0xd192e819d6ef5218",
	"0xd69906245565a910",
	"0xf40e35855771202a",
	"0x106aa07032bbd1b8",
	"0x19a4c116b8d2d0c8",
	"0x1e376c085141ab53",
	"0x2748774cdf8eeb99",
	"0x34b0bcb5e19b48a8",
	"0x391c0cb3c5c95a63",
	"0x4ed8aa4ae3418acb",
	"0x5b9cca4f7763e373",
	"0x682e6ff3d6b2b8a3",
	"0x748f82ee5defb2fc",
	"0x78a5636f43172f60",
	"0x84c87814a1f0ab72",
	"0x8cc702081a6439ec",
	"0x90befffa23631e28",
	"0xa4506cebde82bde9",
	"0xbef9a3f7b2c67915",
	"0xc67178f2e372532b",
	"0xca273eceea26619c",
	"0xd186b8c721c0c207",
	"0xeada7dd6cde0eb1e",
	"0xf57d4f7fee6ed178",
	"0x06f067aa72176fba",
	"0x0a637dc5a2c898a6",
	"0x113f9804bef90dae",
	"0x1b710b35131c471b",
	"0x28db77f523047d84",
	"0x32caab7b40c72493",
	"0x3c9ebe0a15c9bebc",
	"0x431d67c49c100d4c",
	"0x4cc5d4becb3e42b6",
	"0x597f299cfc657e2a",
	"0x5fcb6fab3ad6faec",
	"0x6c44198c4a475817"
].map((n) => BigInt(n))))();
var SHA512_Kh = /* @__PURE__ */ (() => K512[0])();
var SHA512_Kl = /* @__PURE__ */ (() => K512[1])();
var SHA512_W_H = /* @__PURE__ */ new Uint32Array(80);
var SHA512_W_L = /* @__PURE__ */ new Uint32Array(80);
var SHA2_64B = class extends HashMD {
	Ah = 0;
	Al = 0;
	Bh = 0;
	Bl = 0;
	Ch = 0;
	Cl = 0;
	Dh = 0;
	Dl = 0;
	Eh = 0;
	El = 0;
	Fh = 0;
	Fl = 0;
	Gh = 0;
	Gl = 0;
	Hh = 0;
	Hl = 0;
	constructor(outputLen, IV) {
		super(128, outputLen, 16, false);
		this.Ah = IV[0] | 0;
		this.Al = IV[1] | 0;
		this.Bh = IV[2] | 0;
		this.Bl = IV[3] | 0;
		this.Ch = IV[4] | 0;
		this.Cl = IV[5] | 0;
		this.Dh = IV[6] | 0;
		this.Dl = IV[7] | 0;
		this.Eh = IV[8] | 0;
		this.El = IV[9] | 0;
		this.Fh = IV[10] | 0;
		this.Fl = IV[11] | 0;
		this.Gh = IV[12] | 0;
		this.Gl = IV[13] | 0;
		this.Hh = IV[14] | 0;
		this.Hl = IV[15] | 0;
	}
	get() {
		const { Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl } = this;
		return [
			Ah,
			Al,
			Bh,
			Bl,
			Ch,
			Cl,
			Dh,
			Dl,
			Eh,
			El,
			Fh,
			Fl,
			Gh,
			Gl,
			Hh,
			Hl
		];
	}
	set(Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl) {
		this.Ah = Ah | 0;
		this.Al = Al | 0;
		this.Bh = Bh | 0;
		this.Bl = Bl | 0;
		this.Ch = Ch | 0;
		this.Cl = Cl | 0;
		this.Dh = Dh | 0;
		this.Dl = Dl | 0;
		this.Eh = Eh | 0;
		this.El = El | 0;
		this.Fh = Fh | 0;
		this.Fl = Fl | 0;
		this.Gh = Gh | 0;
		this.Gl = Gl | 0;
		this.Hh = Hh | 0;
		this.Hl = Hl | 0;
	}
	_cloneInto(to) {
		(to ||= new this.constructor()).set(...this.get());
		return this._cloneIntoMeta(to);
	}
	process(view, offset) {
		for (let i = 0; i < 16; i++, offset += 4) {
			SHA512_W_H[i] = view.getUint32(offset);
			SHA512_W_L[i] = view.getUint32(offset += 4);
		}
		for (let i = 16; i < 80; i++) {
			const W15h = SHA512_W_H[i - 15] | 0;
			const W15l = SHA512_W_L[i - 15] | 0;
			const s0h = rotrSH(W15h, W15l, 1) ^ rotrSH(W15h, W15l, 8) ^ shrSH(W15h, W15l, 7);
			const s0l = rotrSL(W15h, W15l, 1) ^ rotrSL(W15h, W15l, 8) ^ shrSL(W15h, W15l, 7);
			const W2h = SHA512_W_H[i - 2] | 0;
			const W2l = SHA512_W_L[i - 2] | 0;
			const s1h = rotrSH(W2h, W2l, 19) ^ rotrBH(W2h, W2l, 61) ^ shrSH(W2h, W2l, 6);
			const SUMl = add4L(s0l, rotrSL(W2h, W2l, 19) ^ rotrBL(W2h, W2l, 61) ^ shrSL(W2h, W2l, 6), SHA512_W_L[i - 7], SHA512_W_L[i - 16]);
			const SUMh = add4H(SUMl, s0h, s1h, SHA512_W_H[i - 7], SHA512_W_H[i - 16]);
			SHA512_W_H[i] = SUMh | 0;
			SHA512_W_L[i] = SUMl | 0;
		}
		let { Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl } = this;
		for (let i = 0; i < 80; i++) {
			const sigma1h = rotrSH(Eh, El, 14) ^ rotrSH(Eh, El, 18) ^ rotrBH(Eh, El, 41);
			const sigma1l = rotrSL(Eh, El, 14) ^ rotrSL(Eh, El, 18) ^ rotrBL(Eh, El, 41);
			const CHIh = Eh & Fh ^ ~Eh & Gh;
			const CHIl = El & Fl ^ ~El & Gl;
			const T1ll = add5L(Hl, sigma1l, CHIl, SHA512_Kl[i], SHA512_W_L[i]);
			const T1h = add5H(T1ll, Hh, sigma1h, CHIh, SHA512_Kh[i], SHA512_W_H[i]);
			const T1l = T1ll | 0;
			const sigma0h = rotrSH(Ah, Al, 28) ^ rotrBH(Ah, Al, 34) ^ rotrBH(Ah, Al, 39);
			const sigma0l = rotrSL(Ah, Al, 28) ^ rotrBL(Ah, Al, 34) ^ rotrBL(Ah, Al, 39);
			const MAJh = Ah & Bh ^ Ah & Ch ^ Bh & Ch;
			const MAJl = Al & Bl ^ Al & Cl ^ Bl & Cl;
			Hh = Gh | 0;
			Hl = Gl | 0;
			Gh = Fh | 0;
			Gl = Fl | 0;
			Fh = Eh | 0;
			Fl = El | 0;
			({h: Eh, l: El} = add(Dh | 0, Dl | 0, T1h | 0, T1l | 0));
			Dh = Ch | 0;
			Dl = Cl | 0;
			Ch = Bh | 0;
			Cl = Bl | 0;
			Bh = Ah | 0;
			Bl = Al | 0;
			const All = add3L(T1l, sigma0l, MAJl);
			Ah = add3H(All, T1h, sigma0h, MAJh);
			Al = All | 0;
		}
		({h: Ah, l: Al} = add(this.Ah | 0, this.Al | 0, Ah | 0, Al | 0));
		({h: Bh, l: Bl} = add(this.Bh | 0, this.Bl | 0, Bh | 0, Bl | 0));
		({h: Ch, l: Cl} = add(this.Ch | 0, this.Cl | 0, Ch | 0, Cl | 0));
		({h: Dh, l: Dl} = add(this.Dh | 0, this.Dl | 0, Dh | 0, Dl | 0));
		({h: Eh, l: El} = add(this.Eh | 0, this.El | 0, Eh | 0, El | 0));
		({h: Fh, l: Fl} = add(this.Fh | 0, this.Fl | 0, Fh | 0, Fl | 0));
		({h: Gh, l: Gl} = add(this.Gh | 0, this.Gl | 0, Gh | 0, Gl | 0));
		({h: Hh, l: Hl} = add(this.Hh | 0, this.Hl | 0, Hh | 0, Hl | 0));
		this.set(Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl);
	}
	roundClean() {
		clean(SHA512_W_H, SHA512_W_L);
	}
	destroy() {
		this.destroyed = true;
		clean(this.buffer);
		this.set(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	}
};
var _SHA512 = class extends SHA2_64B {
	constructor() {
		super(64, SHA512_IV);
	}
};
var sha256 = /* @__PURE__ */ createHasher(() => new _SHA256(), /* @__PURE__ */ oidNist(1));
var sha512 = /* @__PURE__ */ createHasher(() => new _SHA512(), /* @__PURE__ */ oidNist(3));
// src/verify/sha3.ts
/**
* SHA3-256 as FIPS 202 has it, written for speed: half of the time of a verification is this hash, and noble's takes two to
* three times as long. Tests hold it to noble's and to Python's for every length up to some blocks.
*
* The state is 25 lanes of 64 bits, x + 5y is the number of the lane in column x and row y. JavaScript has fast integers of 32
* bits only, so a lane is kept as two of them: its even bits (`e`) and its odd bits (`o`). A rotation of a lane by 2n is a
* rotation of both by n; one by 2n + 1 also exchanges them. Processors have an instruction for that, and none for a rotation
* across two halves.
*/
/** Bytes of a block: the state's 200, less twice the bytes of the hash. */
var BLOCK$2 = 136;
var HASH_BYTES = 32;
var ROUNDS = 24;
/** The constants of the rounds, each as its even and its odd bits: bits 0, 1, 3, 7, 15, 31 and 63 come from a shift register. */
var IOTA = /* @__PURE__ */ new Int32Array(48);
for (let round = 0, register = 1; round < ROUNDS; round++) for (let power = 0; power < 7; power++) {
	const bit = 2 ** power - 1;
	if (register & 1) IOTA[2 * round + (bit & 1)] |= 1 << (bit >> 1);
	register = register << 1 ^ (register >> 7) * 369;
}
/** The even bits of a number, put together in its lower half. */
function gatherEven(bits) {
	let even = bits & 1431655765;
	even = (even | even >>> 1) & 858993459;
	even = (even | even >>> 2) & 252645135;
	even = (even | even >>> 4) & 16711935;
	return (even | even >>> 8) & 65535;
}
/** The lower half of a number, spread over the even bits. */
function spreadEven(half) {
	let bits = half & 65535;
	bits = (bits | bits << 8) & 16711935;
	bits = (bits | bits << 4) & 252645135;
	bits = (bits | bits << 2) & 858993459;
	return (bits | bits << 1) & 1431655765;
}
/** Keccak-f[1600]. Every lane is a variable: a loop over an array would take twice as long. */
function permute(state) {
	let e0 = state[0], o0 = state[1], e1 = state[2], o1 = state[3], e2 = state[4], o2 = state[5], e3 = state[6], o3 = state[7], e4 = state[8], o4 = state[9];
	let e5 = state[10], o5 = state[11], e6 = state[12], o6 = state[13], e7 = state[14], o7 = state[15], e8 = state[16], o8 = state[17], e9 = state[18], o9 = state[19];
	let e10 = state[20], o10 = state[21], e11 = state[22], o11 = state[23], e12 = state[24], o12 = state[25], e13 = state[26], o13 = state[27], e14 = state[28], o14 = state[29];
	let e15 = state[30], o15 = state[31], e16 = state[32], o16 = state[33], e17 = state[34], o17 = state[35], e18 = state[36], o18 = state[37], e19 = state[38], o19 = state[39];
	let e20 = state[40], o20 = state[41], e21 = state[42], o21 = state[43], e22 = state[44], o22 = state[45], e23 = state[46], o23 = state[47], e24 = state[48], o24 = state[49];
	for (let round = 0; round < 48; round += 2) {
		const p0 = e0 ^ e5 ^ e10 ^ e15 ^ e20, q0 = o0 ^ o5 ^ o10 ^ o15 ^ o20;
		const p1 = e1 ^ e6 ^ e11 ^ e16 ^ e21, q1 = o1 ^ o6 ^ o11 ^ o16 ^ o21;
		const p2 = e2 ^ e7 ^ e12 ^ e17 ^ e22, q2 = o2 ^ o7 ^ o12 ^ o17 ^ o22;
		const p3 = e3 ^ e8 ^ e13 ^ e18 ^ e23, q3 = o3 ^ o8 ^ o13 ^ o18 ^ o23;
		const p4 = e4 ^ e9 ^ e14 ^ e19 ^ e24, q4 = o4 ^ o9 ^ o14 ^ o19 ^ o24;
		const s0 = p4 ^ (q1 << 1 | q1 >>> 31), t0 = q4 ^ p1;
		const s1 = p0 ^ (q2 << 1 | q2 >>> 31), t1 = q0 ^ p2;
		const s2 = p1 ^ (q3 << 1 | q3 >>> 31), t2 = q1 ^ p3;
		const s3 = p2 ^ (q4 << 1 | q4 >>> 31), t3 = q2 ^ p4;
		const s4 = p3 ^ (q0 << 1 | q0 >>> 31), t4 = q3 ^ p0;
		e0 ^= s0;
		o0 ^= t0;
		e1 ^= s1;
		o1 ^= t1;
		e2 ^= s2;
		o2 ^= t2;
		e3 ^= s3;
		o3 ^= t3;
		e4 ^= s4;
		o4 ^= t4;
		e5 ^= s0;
		o5 ^= t0;
		e6 ^= s1;
		o6 ^= t1;
		e7 ^= s2;
		o7 ^= t2;
		e8 ^= s3;
		o8 ^= t3;
		e9 ^= s4;
		o9 ^= t4;
		e10 ^= s0;
		o10 ^= t0;
		e11 ^= s1;
		o11 ^= t1;
		e12 ^= s2;
		o12 ^= t2;
		e13 ^= s3;
		o13 ^= t3;
		e14 ^= s4;
		o14 ^= t4;
		e15 ^= s0;
		o15 ^= t0;
		e16 ^= s1;
		o16 ^= t1;
		e17 ^= s2;
		o17 ^= t2;
		e18 ^= s3;
		o18 ^= t3;
		e19 ^= s4;
		o19 ^= t4;
		e20 ^= s0;
		o20 ^= t0;
		e21 ^= s1;
		o21 ^= t1;
		e22 ^= s2;
		o22 ^= t2;
		e23 ^= s3;
		o23 ^= t3;
		e24 ^= s4;
		o24 ^= t4;
		const f0 = e0, g0 = o0;
		const f1 = e6 << 22 | e6 >>> 10, g1 = o6 << 22 | o6 >>> 10;
		const f2 = o12 << 22 | o12 >>> 10, g2 = e12 << 21 | e12 >>> 11;
		const f3 = o18 << 11 | o18 >>> 21, g3 = e18 << 10 | e18 >>> 22;
		const f4 = e24 << 7 | e24 >>> 25, g4 = o24 << 7 | o24 >>> 25;
		const f5 = e3 << 14 | e3 >>> 18, g5 = o3 << 14 | o3 >>> 18;
		const f6 = e9 << 10 | e9 >>> 22, g6 = o9 << 10 | o9 >>> 22;
		const f7 = o10 << 2 | o10 >>> 30, g7 = e10 << 1 | e10 >>> 31;
		const f8 = o16 << 23 | o16 >>> 9, g8 = e16 << 22 | e16 >>> 10;
		const f9 = o22 << 31 | o22 >>> 1, g9 = e22 << 30 | e22 >>> 2;
		const f10 = o1 << 1 | o1 >>> 31, g10 = e1;
		const f11 = e7 << 3 | e7 >>> 29, g11 = o7 << 3 | o7 >>> 29;
		const f12 = o13 << 13 | o13 >>> 19, g12 = e13 << 12 | e13 >>> 20;
		const f13 = e19 << 4 | e19 >>> 28, g13 = o19 << 4 | o19 >>> 28;
		const f14 = e20 << 9 | e20 >>> 23, g14 = o20 << 9 | o20 >>> 23;
		const f15 = o4 << 14 | o4 >>> 18, g15 = e4 << 13 | e4 >>> 19;
		const f16 = e5 << 18 | e5 >>> 14, g16 = o5 << 18 | o5 >>> 14;
		const f17 = e11 << 5 | e11 >>> 27, g17 = o11 << 5 | o11 >>> 27;
		const f18 = o17 << 8 | o17 >>> 24, g18 = e17 << 7 | e17 >>> 25;
		const f19 = e23 << 28 | e23 >>> 4, g19 = o23 << 28 | o23 >>> 4;
		const f20 = e2 << 31 | e2 >>> 1, g20 = o2 << 31 | o2 >>> 1;
		const f21 = o8 << 28 | o8 >>> 4, g21 = e8 << 27 | e8 >>> 5;
		const f22 = o14 << 20 | o14 >>> 12, g22 = e14 << 19 | e14 >>> 13;
		const f23 = o15 << 21 | o15 >>> 11, g23 = e15 << 20 | e15 >>> 12;
		const f24 = e21 << 1 | e21 >>> 31, g24 = o21 << 1 | o21 >>> 31;
		e0 = f0 ^ ~f1 & f2 ^ IOTA[round];
		e1 = f1 ^ ~f2 & f3;
		e2 = f2 ^ ~f3 & f4;
		e3 = f3 ^ ~f4 & f0;
		e4 = f4 ^ ~f0 & f1;
		o0 = g0 ^ ~g1 & g2 ^ IOTA[round + 1];
		o1 = g1 ^ ~g2 & g3;
		o2 = g2 ^ ~g3 & g4;
		o3 = g3 ^ ~g4 & g0;
		o4 = g4 ^ ~g0 & g1;
		e5 = f5 ^ ~f6 & f7;
		e6 = f6 ^ ~f7 & f8;
		e7 = f7 ^ ~f8 & f9;
		e8 = f8 ^ ~f9 & f5;
		e9 = f9 ^ ~f5 & f6;
		o5 = g5 ^ ~g6 & g7;
		o6 = g6 ^ ~g7 & g8;
		o7 = g7 ^ ~g8 & g9;
		o8 = g8 ^ ~g9 & g5;
		o9 = g9 ^ ~g5 & g6;
		e10 = f10 ^ ~f11 & f12;
		e11 = f11 ^ ~f12 & f13;
		e12 = f12 ^ ~f13 & f14;
		e13 = f13 ^ ~f14 & f10;
		e14 = f14 ^ ~f10 & f11;
		o10 = g10 ^ ~g11 & g12;
		o11 = g11 ^ ~g12 & g13;
		o12 = g12 ^ ~g13 & g14;
		o13 = g13 ^ ~g14 & g10;
		o14 = g14 ^ ~g10 & g11;
		e15 = f15 ^ ~f16 & f17;
		e16 = f16 ^ ~f17 & f18;
		e17 = f17 ^ ~f18 & f19;
		e18 = f18 ^ ~f19 & f15;
		e19 = f19 ^ ~f15 & f16;
		o15 = g15 ^ ~g16 & g17;
		o16 = g16 ^ ~g17 & g18;
		o17 = g17 ^ ~g18 & g19;
		o18 = g18 ^ ~g19 & g15;
		o19 = g19 ^ ~g15 & g16;
		e20 = f20 ^ ~f21 & f22;
		e21 = f21 ^ ~f22 & f23;
		e22 = f22 ^ ~f23 & f24;
		e23 = f23 ^ ~f24 & f20;
		e24 = f24 ^ ~f20 & f21;
		o20 = g20 ^ ~g21 & g22;
		o21 = g21 ^ ~g22 & g23;
		o22 = g22 ^ ~g23 & g24;
		o23 = g23 ^ ~g24 & g20;
		o24 = g24 ^ ~g20 & g21;
	}
	state[0] = e0;
	state[1] = o0;
	state[2] = e1;
	state[3] = o1;
	state[4] = e2;
	state[5] = o2;
	state[6] = e3;
	state[7] = o3;
	state[8] = e4;
	state[9] = o4;
	state[10] = e5;
	state[11] = o5;
	state[12] = e6;
	state[13] = o6;
	state[14] = e7;
	state[15] = o7;
	state[16] = e8;
	state[17] = o8;
	state[18] = e9;
	state[19] = o9;
	state[20] = e10;
	state[21] = o10;
	state[22] = e11;
	state[23] = o11;
	state[24] = e12;
	state[25] = o12;
	state[26] = e13;
	state[27] = o13;
	state[28] = e14;
	state[29] = o14;
	state[30] = e15;
	state[31] = o15;
	state[32] = e16;
	state[33] = o16;
	state[34] = e17;
	state[35] = o17;
	state[36] = e18;
	state[37] = o18;
	state[38] = e19;
	state[39] = o19;
	state[40] = e20;
	state[41] = o20;
	state[42] = e21;
	state[43] = o21;
	state[44] = e22;
	state[45] = o22;
	state[46] = e23;
	state[47] = o23;
	state[48] = e24;
	state[49] = o24;
}
/** Add a block to the state and permute it. */
function absorb(state, block, at) {
	for (let lane = 0; lane < BLOCK$2 / 8; lane++) {
		const low = block.getInt32(at + 8 * lane, true), high = block.getInt32(at + 8 * lane + 4, true);
		state[2 * lane] ^= gatherEven(low) | gatherEven(high) << 16;
		state[2 * lane + 1] ^= gatherEven(low >>> 1) | gatherEven(high >>> 1) << 16;
	}
	permute(state);
}
/** The 32 bytes of SHA3-256. */
function sha3(data) {
	const state = /* @__PURE__ */ new Int32Array(50);
	const view = new DataView(data.buffer, data.byteOffset, data.length);
	let at = 0;
	for (; at + BLOCK$2 <= data.length; at += BLOCK$2) absorb(state, view, at);
	const last = new Uint8Array(BLOCK$2);
	last.set(data.subarray(at));
	last[data.length - at] = 6;
	last[135] |= 128;
	absorb(state, new DataView(last.buffer), 0);
	const hash = /* @__PURE__ */ new DataView(/* @__PURE__ */ new ArrayBuffer(HASH_BYTES));
	for (let lane = 0; lane < HASH_BYTES / 8; lane++) {
		const even = state[2 * lane], odd = state[2 * lane + 1];
		hash.setInt32(8 * lane, spreadEven(even) | spreadEven(odd) << 1, true);
		hash.setInt32(8 * lane + 4, spreadEven(even >>> 16) | spreadEven(odd >>> 16) << 1, true);
	}
	return new Uint8Array(hash.buffer);
}
// src/verify/digest.ts
/** The hashes: SHA3-256 for capsules, SHA-256 for receipts and blobs; both as lower-case hex. */
var HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
function toHex(bytes) {
	let out = "";
	for (const byte of bytes) out += HEX[byte];
	return out;
}
/** The value of a hex digit. */
function readDigit(unit) {
	return unit < 58 ? unit - 48 : (unit | 32) - 87;
}
/** The bytes of a text that is known to be lower-case hex. */
function fromHex(text) {
	const bytes = new Uint8Array(text.length / 2);
	for (let at = 0; at < bytes.length; at++) bytes[at] = 16 * readDigit(text.charCodeAt(2 * at)) + readDigit(text.charCodeAt(2 * at + 1));
	return bytes;
}
function sha3Hex(data) {
	return toHex(sha3(data));
}
function sha256Bytes(data) {
	return sha256(data);
}
function sha256Hex(data) {
	return toHex(sha256(typeof data === "string" ? encoder.encode(data) : data));
}
/** SHA-256 of data that comes in pieces. */
function startSha256() {
	const hash = sha256.create();
	return {
		update: (data) => void hash.update(data),
		hex: () => toHex(hash.digest())
	};
}
/** The bytes of base64 with its padding, and without white space; null for any other text. */
function decodeBase64(text) {
	const digits = text.endsWith("==") ? text.slice(0, -2) : text.endsWith("=") ? text.slice(0, -1) : text;
	if (text.length % 4 !== 0 || /[^A-Za-z0-9+/]/.test(digits)) return null;
	const units = atob(text);
	const bytes = new Uint8Array(units.length);
	for (let at = 0; at < bytes.length; at++) bytes[at] = units.charCodeAt(at);
	return bytes;
}
var HEX64 = /^[0-9a-f]{64}$/;
// src/verify/ml_dsa.ts
/** ML-DSA-65: pure FIPS 204 with an empty context. The twin of `aver.keys.algorithms`. */
var SIGNATURE$1 = /^[0-9a-f]{6618}$/;
var PUBLIC$1 = /^[0-9a-f]{3904}$/;
/** Whether it has the form of a signature. Checks no key. */
function isMlDsaSignatureHex(signature) {
	return SIGNATURE$1.test(signature);
}
/** Whether the signature is valid. */
function verifyMlDsa(publicHex, message, signature) {
	if (!PUBLIC$1.test(publicHex) || !SIGNATURE$1.test(signature)) return false;
	try {
		return ml_dsa65.verify(fromHex(signature), message, fromHex(publicHex));
	} catch {
		return false;
	}
}
// src/verify/passkey.ts
/**
* Passkeys: keys that an authenticator holds. They sign statements, and nothing else. The twin of `aver.keys.passkey`.
*
* This module has their form, and needs no curve: the page's own thread uses it. `passkey_signature` verifies.
*/
var ES256 = "ES256";
var EDDSA = "EdDSA";
/** Most characters of the three parts of a signature together. */
var SIGNATURE_MAX = 4096;
/** Most characters of a credential's id: 1,023 bytes, the limit of WebAuthn, in base64url. */
var CREDENTIAL_MAX = 1364;
var RP_ID_MAX = 253;
/** The order of P-256. */
var P256_ORDER = 115792089210356248762697446949407573529996955224135760342422259061068512044369n;
var BASE64URL = /^[A-Za-z0-9_-]+$/;
var P256_PUBLIC = /^04[0-9a-f]{128}$/;
var ED25519_PUBLIC = /^[0-9a-f]{64}$/;
var RP_ID = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Encode bytes as base64url without padding. */
function encodeBase64url(bytes) {
	let text = "";
	for (const byte of bytes) text += String.fromCharCode(byte);
	return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
/** The bytes of base64url without padding. Raises `BadInput` for any other text, also for one with stray bits at its end. */
function decodeBase64url(text) {
	if (!BASE64URL.test(text) || text.length % 4 === 1) throw new BadInput("it is not base64url without padding");
	const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (unit) => unit.charCodeAt(0));
	if (encodeBase64url(bytes) !== text) throw new BadInput("its base64url has stray bits at the end");
	return bytes;
}
/** The public half of a passkey, the name of the site that it belongs to, and the id of its credential. */
var Passkey = class Passkey {
	constructor(data, where) {
		const object = checkObject(data, `${where}.passkey`, [
			"alg",
			"public_key",
			"rp_id",
			"credential"
		]);
		const alg = object.get("alg");
		if (alg !== "ES256" && alg !== "EdDSA") throw new BadInput(`${where}: passkey.alg must be one of ${ES256}, ${EDDSA}`);
		this.alg = alg;
		this.publicKey = textField(object.get("public_key"), `${where}: passkey.public_key`, alg === "ES256" ? P256_PUBLIC : ED25519_PUBLIC);
		this.rpId = textField(object.get("rp_id"), `${where}: passkey.rp_id`, RP_ID);
		this.credential = textField(object.get("credential"), `${where}: passkey.credential`, BASE64URL);
		if (this.rpId.length > RP_ID_MAX || this.credential.length > CREDENTIAL_MAX) throw new BadInput(`${where}: the passkey is too long`);
		decodeBase64url(this.credential);
		this.fingerprint = toHex(sha256Bytes(fromHex(this.publicKey))).slice(0, 16);
	}
	/** The passkey as JSON, as a record holds it. */
	fields() {
		return /* @__PURE__ */ new Map([
			["alg", this.alg],
			["public_key", this.publicKey],
			["rp_id", this.rpId],
			["credential", this.credential]
		]);
	}
	equals(other) {
		return other instanceof Passkey && other.alg === this.alg && other.publicKey === this.publicKey && other.rpId === this.rpId && other.credential === this.credential;
	}
};
/** Read the form of a signature. Raises `BadInput`; `passkeyProblem` checks what it says. */
function readPasskeySignature(data, where) {
	const object = checkObject(data, where, [
		"authenticator_data",
		"client_data",
		"signature"
	]);
	const part = (name) => textField(object.get(name), `${where}.${name}`, BASE64URL);
	const signed = {
		authenticator_data: part("authenticator_data"),
		client_data: part("client_data"),
		signature: part("signature")
	};
	if (Object.values(signed).reduce((sum, text) => sum + text.length, 0) > SIGNATURE_MAX) throw new BadInput(`${where} has more than ${SIGNATURE_MAX} characters`);
	return signed;
}
/** The challenge that a browser gets for the bytes of a statement: base64url of their SHA-256. */
function statementChallenge(message) {
	return encodeBase64url(sha256Bytes(message));
}
/** R and S of a signature in DER; null if it has another form, or one of them is out of range. */
function readDer(bytes) {
	let place = 2;
	const readInteger = () => {
		const size = bytes[place + 1] ?? 0;
		const digits = bytes.subarray(place + 2, place + 2 + size);
		if (bytes[place] !== 2 || size < 1 || size > 33 || digits.length !== size) return null;
		if (digits[0] & 128 || digits[0] === 0 && size > 1 && !(digits[1] & 128)) return null;
		place += 2 + size;
		const value = BigInt(`0x${toHex(digits)}`);
		return value >= 1n && value < 115792089210356248762697446949407573529996955224135760342422259061068512044369n ? value : null;
	};
	if (bytes[0] !== 48 || bytes[1] !== bytes.length - 2) return null;
	const r = readInteger();
	const s = r === null ? null : readInteger();
	return r === null || s === null || place !== bytes.length ? null : {
		r,
		s
	};
}
// src/verify/text.ts
/** Texts as Python treats them: printable characters, code points, white space, line ends, and how it writes values. */
/** Whether every character may be shown: no control, format, private or unassigned one, and no space but U+0020. */
function isPrintable(text) {
	return !/[^ -~]/.test(text) || /^(?:[^\p{C}\p{Z}]| )*$/u.test(text);
}
/** How many code points a text has. */
function codePoints(text) {
	let count = 0;
	for (let at = 0; at < text.length; at++) {
		const unit = text.charCodeAt(at);
		const isLow = unit >= 56320 && unit < 57344;
		const before = isLow && at > 0 ? text.charCodeAt(at - 1) : 0;
		if (!(isLow && before >= 55296 && before < 56320)) count++;
	}
	return count;
}
/** The first code points of a text. */
function cutText(text, most) {
	if (text.length <= most) return text;
	let out = "";
	let count = 0;
	for (const character of text) {
		if (count++ >= most) break;
		out += character;
	}
	return out;
}
var PYTHON_SPACE = "\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
var AROUND = new RegExp(`^[${PYTHON_SPACE}]+|[${PYTHON_SPACE}]+$`, "g");
var LINE_END = /[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/;
/** A text without the white space around it, as Python's `strip` knows it. */
function strip(text) {
	return text.replace(AROUND, "");
}
/** The text up to its first line end. */
function firstLine(text) {
	return text.split(LINE_END, 1)[0] ?? "";
}
var E_MAIL = /[\p{L}\p{N}_.%+-]{1,64}@[\p{L}\p{N}_-]{1,63}(?:\.[\p{L}\p{N}_-]{1,63}){1,8}/gu;
var HOME = new RegExp(`(?:/home|/Users|[A-Za-z]:\\\\Users)[/\\\\][^/\\\\${PYTHON_SPACE}]+`, "gu");
/** A title without e-mail addresses and home directories. */
function cleanTitle(line, most) {
	const cleaned = line.replace(E_MAIL, "[e-mail]").replace(HOME, "~");
	return cutText(cleaned.isWellFormed() ? cleaned : replaceSurrogates(cleaned), most);
}
function replaceSurrogates(text) {
	let out = "";
	for (const character of text) out += character.isWellFormed() ? character : "?";
	return out;
}
var FILE_NAME_MAX = 240;
/** Whether it is one plain file name and nothing else: no separator, no `..`, not hidden, printable. */
function isFileName(name) {
	return typeof name === "string" && isPrintable(name) && name !== "" && !name.startsWith(".") && !name.includes("/") && !name.includes("\\") && new TextEncoder().encode(name).length <= FILE_NAME_MAX;
}
var ESCAPES = {
	"\\": "\\\\",
	"\n": "\\n",
	"\r": "\\r",
	"	": "\\t"
};
/** A character that is not printed in ASCII, as Python escapes it. */
function escapeCharacter(character) {
	const code = character.codePointAt(0);
	const digits = code.toString(16);
	return ESCAPES[character] ?? (code < 256 ? `\\x${digits.padStart(2, "0")}` : code < 65536 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`);
}
/** A value as Python's `repr` writes it, such as `{'id': [1, None]}`. `escaped` are the characters that it escapes. */
function writePython(value, escaped) {
	const write = (item) => writePython(item, escaped);
	if (typeof value === "string") {
		const quote = value.includes("'") && !value.includes("\"") ? "\"" : "'";
		const text = value.replace(escaped, escapeCharacter);
		return quote + (quote === "'" ? text.replaceAll("'", "\\'") : text) + quote;
	}
	if (value instanceof JsonNumber) return canonicalNumber(value);
	if (Array.isArray(value)) return `[${value.map(write).join(", ")}]`;
	if (isObject(value)) return `{${[...value].map(([name, item]) => `${write(name)}: ${write(item)}`).join(", ")}}`;
	return value === true ? "True" : value === false ? "False" : "None";
}
/** A value as Python's `str` writes it. */
function pythonText(value) {
	return typeof value === "string" ? value : writePython(value, /\\|(?! )[\p{C}\p{Z}]/gu);
}
/** A value for a message, as Python's `ascii` writes it: shortened. */
function show(value, most = 80) {
	return writePython(value, /[^ -[\]-~]/gu).slice(0, most);
}
// src/verify/statement.ts
/**
* Signed statements: everything a key signs that is not a capsule. The twin of `aver.keys.statement`.
*
* The signed message is `aver/<purpose>/v1`, a line feed, and the canonical JSON of the content. A key with an ML-DSA-65
* half signs with both halves, and both must be valid. A passkey signs only statements of `PASSKEY_PURPOSES`. No ring has a
* passkey, so `checkStatement` never calls such a signature valid: `passkeyProblem` checks it.
*/
/** Most signatures on one statement. */
var SIGNATURES_MAX = 64;
/** Largest content of a statement, in canonical bytes; a checkpoint or a report is not stored in a capsule, and may be larger. */
var STATEMENT_MAX$1 = 262144;
var CHECKPOINT_MAX = 12582912;
var PASSKEY_PURPOSES = [
	"approval",
	"enrolment",
	"withdrawal"
];
var PURPOSE$1 = /^[a-z][a-z0-9-]{0,31}$/;
var FINGERPRINT = /^[0-9a-f]{16}$/;
var ED25519$1 = /^[0-9a-f]{128}$/;
var ML_DSA_65$1 = /^[0-9a-f]{6618}$/;
/** A signature as JSON, as a record holds it. */
function signatureFields({ by, ed25519, ml_dsa_65, passkey }) {
	if (passkey === null) return new Map(Object.entries({
		by,
		ed25519,
		ml_dsa_65
	}));
	return /* @__PURE__ */ new Map([["by", by], ["passkey", new Map(Object.entries(passkey))]]);
}
/** A statement as JSON, as a record holds it. */
function statementFields$1({ purpose, content, signatures }) {
	return /* @__PURE__ */ new Map([
		["v", new JsonNumber("1")],
		["purpose", purpose],
		["content", content],
		["signatures", signatures.map(signatureFields)]
	]);
}
/** Return `value` if it is an object with every required key and no others but the optional ones. */
function checkObject(value, where, required, optional = []) {
	if (!isObject(value)) throw new BadInput(`${where} must be an object`);
	for (const name of required) if (!value.has(name)) throw new BadInput(`${where} lacks '${name}'`);
	for (const name of value.keys()) if (!required.includes(name) && !optional.includes(name)) throw new BadInput(`${where} has an unknown key ${show(name)}`);
	return value;
}
/** Raises `BadInput` unless the version is 1, the only one there is. */
function checkVersion(value, where) {
	if (!isInteger(value) || value.text !== "1") throw new BadInput(`${where} is of a version that this page does not read`);
}
/** Return a string that matches the whole pattern. */
function textField(value, where, pattern) {
	if (typeof value !== "string" || !pattern.test(value)) throw new BadInput(`${where} has a bad value`);
	return value;
}
var TIME$1 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(\.\d{6})?\+00:00$/;
/** Return a UTC timestamp as Aver writes it. */
function timeField(value, where) {
	const text = textField(value, where, TIME$1);
	if (!isCalendarTime(text)) throw new BadInput(`${where} is not a point in time`);
	return text;
}
var DAYS = [
	31,
	28,
	31,
	30,
	31,
	30,
	31,
	31,
	30,
	31,
	30,
	31
];
/** Whether the first 19 characters, `YYYY-MM-DDTHH:MM:SS`, are a time of the calendar. */
function isCalendarTime(text) {
	const [year, month, day] = [
		Number(text.slice(0, 4)),
		Number(text.slice(5, 7)),
		Number(text.slice(8, 10))
	];
	const isLeap = year % 4 === 0 && year % 100 !== 0 || year % 400 === 0;
	const days = month === 2 && isLeap ? 29 : DAYS[month - 1] ?? 0;
	return year >= 1 && day >= 1 && day <= days && text.slice(11, 13) <= "23" && text.slice(14, 16) <= "59" && text.slice(17, 19) <= "59";
}
/** Read a statement. Raises `BadInput`. */
function readStatement(data, where = "statement") {
	const object = checkObject(data, where, [
		"v",
		"purpose",
		"content",
		"signatures"
	]);
	checkVersion(object.get("v"), where);
	const purpose = textField(object.get("purpose"), `${where}.purpose`, PURPOSE$1);
	const signatures = object.get("signatures");
	if (!Array.isArray(signatures) || signatures.length > SIGNATURES_MAX) throw new BadInput(`${where}.signatures must be a list of at most ${SIGNATURES_MAX}`);
	const content = object.get("content");
	statementBytes(purpose, content);
	return {
		purpose,
		content,
		signatures: signatures.map((item, at) => readSignature(item, `${where}.signatures[${at}]`, purpose))
	};
}
function readSignature(item, where, purpose) {
	if (PASSKEY_PURPOSES.includes(purpose) && isObject(item) && item.has("passkey")) {
		const object = checkObject(item, where, ["by", "passkey"]);
		return {
			by: textField(object.get("by"), `${where}.by`, FINGERPRINT),
			ed25519: "",
			ml_dsa_65: "",
			passkey: readPasskeySignature(object.get("passkey"), `${where}.passkey`)
		};
	}
	const object = checkObject(item, where, [
		"by",
		"ed25519",
		"ml_dsa_65"
	]);
	const second = object.get("ml_dsa_65");
	return {
		by: textField(object.get("by"), `${where}.by`, FINGERPRINT),
		ed25519: textField(object.get("ed25519"), `${where}.ed25519`, ED25519$1),
		ml_dsa_65: second === "" ? "" : textField(second, `${where}.ml_dsa_65`, ML_DSA_65$1),
		passkey: null
	};
}
/** The message that is signed. Raises `BadInput` if the content has no canonical form or is too large. */
function statementBytes(purpose, content) {
	if (!isObject(content)) throw new BadInput("a statement's content is an object");
	const canonical = encoder.encode(canonicalJson(content));
	const limit = purpose === "checkpoint" || purpose === "report" ? CHECKPOINT_MAX : STATEMENT_MAX$1;
	if (canonical.length > limit) throw new BadInput(`a ${purpose} statement's content is at most ${limit} bytes`);
	const start = encoder.encode(`aver/${purpose}/v1\n`);
	const message = new Uint8Array(start.length + canonical.length);
	message.set(start);
	message.set(canonical, start.length);
	return message;
}
/** Check every signature. Returns one result for each, in order. */
function checkStatement(statement, ring, ed25519) {
	const message = statementBytes(statement.purpose, statement.content);
	return statement.signatures.map((signature) => {
		const candidates = ring.lookup(signature.by);
		const holds = (key) => ed25519.verify(key.ed25519, message, signature.ed25519) && (key.mlDsa === "" || verifyMlDsa(key.mlDsa, message, signature.ml_dsa_65));
		const key = candidates.find(holds);
		if (key !== void 0) return {
			by: signature.by,
			outcome: "valid",
			key
		};
		if (!candidates.length && !ring.keys.some(holds)) return {
			by: signature.by,
			outcome: "unknown",
			key: null
		};
		return {
			by: signature.by,
			outcome: "invalid",
			key: null
		};
	});
}
// src/verify/ring.ts
var ED25519 = /^[0-9a-f]{64}$/;
var ML_DSA_65 = /^[0-9a-f]{3904}$/;
var IDENTITY = /^(?:ledger|(?:agent|person|policy):[A-Za-z0-9_-][A-Za-z0-9._-]{0,63})$/;
var PURPOSES = [
	"seal",
	"approve",
	"policy",
	"checkpoint"
];
var EPOCH_MAX = 1e6;
var CLASSIC = "ed25519";
var HYBRID = "ed25519+ml-dsa-65";
/** Both halves in lower-case hex. `mlDsa` is empty if the key has no post-quantum half. */
var PublicKey = class {
	constructor(ed25519, mlDsa = "") {
		if (typeof ed25519 !== "string" || !ED25519.test(ed25519)) throw new BadInput("an Ed25519 public key is 64 lower-case hex digits");
		if (mlDsa !== "" && (typeof mlDsa !== "string" || !ML_DSA_65.test(mlDsa))) throw new BadInput("an ML-DSA-65 public key is 3904 lower-case hex digits");
		this.ed25519 = ed25519;
		this.mlDsa = mlDsa;
	}
	get fingerprint() {
		return this.ed25519.slice(0, 16);
	}
	get algorithm() {
		return this.mlDsa ? HYBRID : CLASSIC;
	}
	equals(other) {
		return this.ed25519 === other.ed25519 && this.mlDsa === other.mlDsa;
	}
};
/** Whose key it is and what for, as an export or a `keys` chain says. */
var KeyRole = class {
	constructor(identity, purpose, algorithm) {
		this.identity = identity;
		this.purpose = purpose;
		this.algorithm = algorithm;
	}
	/** Whether the key may seal the records of ordinary chains. */
	get maySeal() {
		return this.purpose === "seal";
	}
	/** Whether the key may speak for the ledger: seal `meta` and `keys`, and sign checkpoints. */
	get mayAttest() {
		return this.purpose === "checkpoint" || this.identity === "ledger" && this.purpose === "seal";
	}
	toString() {
		return `${this.identity}, purpose ${this.purpose}`;
	}
};
var ENTRY_KEYS = [...[
	"identity",
	"purpose",
	"epoch",
	"created_at",
	"retired_at",
	"statement"
], ...[
	"public_key",
	"public_key_pq",
	"algorithm",
	"fingerprint",
	"status"
]];
/** Read the entry of a ring or of a key export. Raises `BadInput`. */
function readRingEntry(data, where = "entry") {
	const object = checkObject(data, where, ENTRY_KEYS);
	const get = (name) => object.get(name);
	const [identity, purpose, epoch, statement] = [
		get("identity"),
		get("purpose"),
		get("epoch"),
		get("statement")
	];
	if (typeof identity !== "string" || !IDENTITY.test(identity)) throw new BadInput(`${where} names no identity`);
	if (typeof purpose !== "string" || !PURPOSES.includes(purpose)) throw new BadInput(`${where} names no purpose`);
	if (!isInteger(epoch) || !(epoch.value >= 0 && epoch.value <= EPOCH_MAX)) throw new BadInput(`${where} has a bad epoch`);
	const entry = {
		identity,
		purpose,
		epoch: epoch.value,
		key: new PublicKey(get("public_key"), get("public_key_pq")),
		createdAt: timeField(get("created_at"), `${where}.created_at`),
		retiredAt: get("retired_at") === null ? null : timeField(get("retired_at"), `${where}.retired_at`),
		statement: statement === null ? null : readStatement(statement, `${where}.statement`)
	};
	const derived = {
		algorithm: entry.key.algorithm,
		fingerprint: entry.key.fingerprint,
		status: entry.retiredAt === null ? "active" : "retired"
	};
	for (const [name, value] of Object.entries(derived)) if (get(name) !== value) throw new BadInput(`${where}.${name} contradicts the rest of the entry`);
	return entry;
}
/** The pinned keys. */
var Ring = class {
	bySigner = /* @__PURE__ */ new Map();
	byKey = /* @__PURE__ */ new Map();
	constructor(keys = []) {
		const known = /* @__PURE__ */ new Map();
		for (const given of keys) {
			const key = given instanceof PublicKey ? given : given.key;
			if (!(given instanceof PublicKey)) this.byKey.set(key.ed25519, given);
			known.set(key.ed25519, mergeKeys(known.get(key.ed25519), key));
		}
		this.keys = [...known.values()];
		this.published = [...this.byKey.values()];
		for (const key of this.keys) for (const name of [key.fingerprint, `qp_key_${key.ed25519.slice(0, 4)}`]) this.bySigner.set(name, [...this.bySigner.get(name) ?? [], key]);
	}
	/** Every key that a record may mean by `signed_by`; none if it is unknown. */
	lookup(signedBy) {
		return this.bySigner.get(signedBy) ?? [];
	}
	/** What its owner published about a key; null for a bare key. */
	entryOf(key) {
		return this.byKey.get(key.ed25519) ?? null;
	}
	roleOf(key) {
		const entry = this.entryOf(key);
		return entry === null ? null : new KeyRole(entry.identity, entry.purpose, entry.key.algorithm);
	}
	/** When each retired key was retired, by the whole key. A rotation statement retires the old key, too. */
	retirementTimes(ed25519) {
		const times = /* @__PURE__ */ new Map();
		const note = (key, at) => {
			const before = times.get(key);
			if (at !== null) times.set(key, before !== void 0 && before < at ? before : at);
		};
		for (const entry of this.published) {
			note(entry.key.ed25519, entry.retiredAt);
			const rotation = entry.statement === null ? null : readRotation(entry.statement, ed25519);
			if (rotation !== null) note(rotation.old.ed25519, rotation.at);
		}
		return times;
	}
};
function mergeKeys(known, key) {
	if (known === void 0) return key;
	if (known.mlDsa && key.mlDsa && known.mlDsa !== key.mlDsa) throw new BadInput(`the fingerprint ${key.fingerprint} already belongs to another key`);
	return known.mlDsa ? known : key;
}
/** Read a rotation statement, and check it with the keys that it names. Null unless both of them signed it. */
function readRotation(statement, ed25519) {
	try {
		const side = (name) => {
			const described = statement.content.get(name);
			if (!(described instanceof Map)) throw new BadInput("a rotation names two keys");
			if (!described.has("public_key_pq")) throw new BadInput("a rotation names both halves");
			return new PublicKey(described.get("public_key"), described.get("public_key_pq"));
		};
		const [old, next] = [side("old"), side("new")];
		const identity = statement.content.get("identity");
		const at = timeField(statement.content.get("at"), "at");
		if (statement.purpose !== "rotation" || typeof identity !== "string" || old.ed25519 === next.ed25519) return null;
		const results = checkStatement(statement, new Ring([old, next]), ed25519);
		const signed = (key) => results.some((one) => one.outcome === "valid" && one.key?.equals(key));
		return signed(old) && signed(next) ? {
			identity,
			old,
			new: next,
			at
		} : null;
	} catch (error) {
		if (error instanceof BadInput) return null;
		throw error;
	}
}
// src/verify/verdict.ts
/** Every check of a record or chain, in the order of the report. Other rooms add their own after these. */
var CHECKS = [...[
	"schema",
	"canonical",
	"content",
	"signature",
	"signature_pq",
	"links",
	"genesis",
	"identity",
	"columns"
], ...[
	"store",
	"keys",
	"blobs",
	"meta",
	"profile"
]];
/** The checks that need bytes and keys alone. All others judge what the records mean. */
var INTEGRITY_CHECKS = /* @__PURE__ */ new Set([
	...CHECKS,
	"index",
	"head",
	"page",
	"parts",
	"archive",
	"report",
	"rollback",
	"checkpoint"
]);
INTEGRITY_CHECKS.delete("profile");
var RUN_CHECKS = [
	"receipts",
	"parents",
	"sealed",
	"gates",
	"proof"
];
var ACT_CHECKS = [
	"evidence",
	"effects",
	"delegation"
];
/** How many findings of one check and code a tally keeps; the others are only counted. */
var FINDINGS_KEPT = 100;
/** Characters of a note after which no further note is added to it. */
var NOTE_MAX = 400;
var DOES_NOT_APPLY = "does not apply here";
function toCount(value) {
	const number = Number(value);
	return Number.isSafeInteger(number) ? number : value;
}
function place(chain = null, sequence = null, source = null) {
	return {
		chain,
		sequence: typeof sequence === "bigint" ? toCount(sequence) : sequence,
		source
	};
}
/** A signer without a record in the `keys` chain: its 64 digits, and the trace that it sealed in, where a join may stand for the record. */
function unrecordedKey(key, trace) {
	return trace === null ? key : `${key} ${trace}`;
}
/** The findings and counts of one piece of verification. Merging keeps the order of the pieces. */
var Tally = class {
	records = 0;
	chains = 0;
	done = /* @__PURE__ */ new Map();
	findings = [];
	/** How many findings there are, by check, status and code. */
	counts = /* @__PURE__ */ new Map();
	skipped = /* @__PURE__ */ new Map();
	notes = /* @__PURE__ */ new Map();
	profiles = /* @__PURE__ */ new Map();
	/** The chains of all findings, also of those that are only counted; null for a finding without a chain. */
	doubtful = /* @__PURE__ */ new Set();
	/** By `unrecordedKey`, the signers that an intact `keys` chain does not record, each with its first record. */
	unrecorded = /* @__PURE__ */ new Map();
	/** By `unrecordedKey`, the signers of traces whose joins the trace's operator has sealed: they need no record. */
	vouched = /* @__PURE__ */ new Set();
	add(finding) {
		this.doubtful.add(finding.place.chain);
		const counted = this.countOf(finding);
		counted.count++;
		if (counted.count <= FINDINGS_KEPT) this.findings.push(finding);
	}
	countOf({ check, status, code }) {
		const name = `${check}\n${status}\n${code}`;
		let counted = this.counts.get(name);
		if (counted === void 0) this.counts.set(name, counted = {
			check,
			status,
			code,
			count: 0
		});
		return counted;
	}
	fail(check, code, words, where = place(), proof) {
		this.add({
			check,
			status: "failed",
			code,
			words,
			place: where,
			...proof === void 0 ? {} : { proof }
		});
	}
	warn(check, code, words, where = place()) {
		this.add({
			check,
			status: "warning",
			code,
			words,
			place: where
		});
	}
	countDone(check, times = 1) {
		this.done.set(check, (this.done.get(check) ?? 0) + times);
	}
	/** Note that a check was not made. A reason that matters replaces one that does not. */
	skip(check, reason, { matters }) {
		const before = this.skipped.get(check);
		if (before === void 0 || matters && !before.matters) this.skipped.set(check, {
			reason,
			matters
		});
	}
	hasFailed() {
		return [...this.counts.values()].some((counted) => counted.status === "failed");
	}
	/** Add the tally of the next piece. */
	merge(other) {
		this.records += other.records;
		this.chains += other.chains;
		for (const chain of other.doubtful) this.doubtful.add(chain);
		for (const [signer, where] of other.unrecorded) if (!this.unrecorded.has(signer)) this.unrecorded.set(signer, where);
		for (const signer of other.vouched) this.vouched.add(signer);
		for (const [check, times] of other.done) this.countDone(check, times);
		const room = /* @__PURE__ */ new Map();
		for (const finding of other.findings) {
			const name = `${finding.check}\n${finding.status}\n${finding.code}`;
			const left = (room.get(name) ?? FINDINGS_KEPT - (this.counts.get(name)?.count ?? 0)) - 1;
			room.set(name, left);
			if (left >= 0) this.findings.push(finding);
		}
		for (const counted of other.counts.values()) this.countOf(counted).count += counted.count;
		for (const [check, { reason, matters }] of other.skipped) this.skip(check, reason, { matters });
		for (const [check, note] of other.notes) {
			const before = this.notes.get(check);
			if (before === void 0) this.notes.set(check, note);
			else if (!before.includes(note) && before.length < NOTE_MAX) this.notes.set(check, `${before}; ${note}`);
		}
		for (const [profile, count] of other.profiles) this.profiles.set(profile, (this.profiles.get(profile) ?? 0) + count);
	}
};
/** Turn a tally into a verdict. An expected check that was neither made nor skipped is reported as not checked. */
function conclude(subject, tally, level = "signature", expected = CHECKS) {
	const checks = [.../* @__PURE__ */ new Set([
		...expected,
		...tally.done.keys(),
		...tally.skipped.keys(),
		...tally.findings.map((one) => one.check)
	])].map((name) => buildCheck(name, tally));
	return {
		subject,
		status: statusOf(checks, tally.findings, tally.records),
		level,
		records: tally.records,
		earlier: 0,
		chains: tally.chains,
		first_bad: tally.findings.find((finding) => finding.status === "failed") ?? null,
		checks,
		findings: tally.findings
	};
}
function isUnknown({ status, code }) {
	return status === "not_checked" && code === "UNKNOWN_SIGNER";
}
/** Of how many records the signature was held against a key that the reader holds. */
function heldOf({ checks, records }) {
	const signed = checks.find(({ name }) => name === "signature");
	if (signed === void 0 || signed.status !== "not_checked") return signed === void 0 ? 0 : records;
	return isUnknown(signed) ? Math.max(records - signed.count, 0) : 0;
}
/** The result of the checks that need bytes and keys alone. */
function integrityOf(verdict) {
	const { records } = verdict;
	const checks = verdict.checks.filter(({ name }) => INTEGRITY_CHECKS.has(name));
	if (checks.some(({ status }) => status === "failed")) return "failed";
	if (records === 0) return "none";
	return heldOf(verdict) === records && !checks.some(isUnknown) ? "intact" : "unsigned";
}
function statusOf(checks, findings, records) {
	if (findings.some((finding) => finding.status === "failed")) return "failed";
	if (records === 0) return "empty";
	return checks.some((check) => check.status === "warning" || check.status === "not_checked" && check.matters) ? "qualified" : "verified";
}
function buildCheck(name, tally) {
	const skipped = tally.skipped.get(name);
	for (const status of [
		"failed",
		"not_checked",
		"warning"
	]) {
		const first = tally.findings.find((finding) => finding.check === name && finding.status === status);
		if (first === void 0) continue;
		let count = 0;
		for (const counted of tally.counts.values()) if (counted.check === name && counted.status === status) count += counted.count;
		let more = count > 1 ? ` (${count} in all)` : "";
		if (skipped?.matters && status !== "failed") more = `${more}; not all: ${skipped.reason}`;
		return {
			name,
			status,
			reason: first.words + more,
			code: first.code,
			place: first.place,
			count,
			matters: true
		};
	}
	const plain = {
		name,
		code: null,
		place: null
	};
	if (name === "profile" && tally.profiles.size) {
		const parts = [...tally.profiles].sort(([one], [other]) => one < other ? -1 : 1);
		const count = parts.reduce((sum, [, times]) => sum + times, 0);
		const reason = parts.map(([profile, times]) => `${profile}: ${times}`).join(", ");
		return {
			...plain,
			status: "passed",
			reason,
			count,
			matters: false
		};
	}
	const times = tally.done.get(name);
	if (times) {
		if (skipped?.matters) return {
			...plain,
			status: "not_checked",
			reason: `not all: ${skipped.reason}`,
			count: times,
			matters: true
		};
		return {
			...plain,
			status: "passed",
			reason: tally.notes.get(name) ?? `${times} checked`,
			count: times,
			matters: false
		};
	}
	const { reason, matters } = skipped ?? {
		reason: "does not apply here",
		matters: false
	};
	return {
		...plain,
		status: "not_checked",
		reason,
		count: 0,
		matters
	};
}
/** The document that `aver verify --json` prints. */
function verdictDocument(verdict) {
	return {
		subject: verdict.subject,
		status: verdict.status,
		integrity: integrityOf(verdict),
		level: verdict.level,
		records: verdict.records,
		earlier: verdict.earlier,
		chains: verdict.chains,
		first_bad: verdict.first_bad,
		checks: verdict.checks.map(({ name, status, reason, code, place: where, count }) => {
			return {
				name,
				status,
				reason,
				code,
				place: where,
				count
			};
		}),
		findings: verdict.findings
	};
}
// ../tests/conformance/corpus/ed25519.json
var ed25519_default = { "cases": [
	{
		"public": "17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32a45794e70adf14ff24b7d2f9d21aa747bf7ee35d30b457a92b4a5b451635a8402",
		"valid": true
	},
	{
		"public": "17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32a46794e70adf14ff24b7d2f9d21aa747bf7ee35d30b457a92b4a5b451635a8402",
		"valid": false
	},
	{
		"public": "17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c3aa45794e70adf14ff24b7d2f9d21aa747bf7ee35d30b457a92b4a5b451635a8402",
		"valid": false
	},
	{
		"public": "17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d35b",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32a45794e70adf14ff24b7d2f9d21aa747bf7ee35d30b457a92b4a5b451635a8402",
		"valid": false
	},
	{
		"public": "d63c01223147541df4e170763e9e2788a8bf5971f52a93c5829dbe6f5ff6bba9",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32addb10045b6baf45dae10d700b83882148514174774e44e45482e82f0cedbda08",
		"valid": false
	},
	{
		"public": "17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "6999d5cb5126005c325892f1c6eab824b310708befff12fbaf45dda050cb12f001714052d4d123999d3481ef433eae6141387b7f29e22534cb5438fd0a9bca01",
		"valid": false
	},
	{
		"public": "d63c01223147541df4e170763e9e2788a8bf5971f52a93c5829dbe6f5ff6bba9",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "6999d5cb5126005c325892f1c6eab824b310708befff12fbaf45dda050cb12f039664a9d22f918f83b50feda34a733e78df948f23a997ef3c08031ca6d82e202",
		"valid": false
	},
	{
		"public": "d63c01223147541df4e170763e9e2788a8bf5971f52a93c5829dbe6f5ff6bba9",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "edc876d6831fd2105d0b4389ca2e283166469289146e2ce06faefe98b22548df3d7f9f4e98c44a359c41af028fa056a78d0c659c27e88c57d8a3e4c37e9d000b",
		"valid": true
	},
	{
		"public": "d63c01223147541df4e170763e9e2788a8bf5971f52a93c5829dbe6f5ff6bba9",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "08e8461bace82b50af65402ff1cad3d2399afe459544096a7f106c54fc875d42cafc071b07e4f68ea27d9dee2143ca5ecd8ef64970d7cf23dd88478147e27f04",
		"valid": true
	},
	{
		"public": "0200000000000000000000000000000000000000000000000000000000000000",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32a0500000000000000000000000000000000000000000000000000000000000000",
		"valid": false
	},
	{
		"public": "17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db",
		"message": "abababababababababababababababababababababababababababababababab",
		"signature": "02000000000000000000000000000000000000000000000000000000000000000500000000000000000000000000000000000000000000000000000000000000",
		"valid": false
	}
] };
// src/verify/block.ts
/** Aver's block in a record, the kinds of records, and the names of chains. The twin of `aver.capsule.aver_block`. */
var RESERVED_CHAINS = /* @__PURE__ */ new Set(["meta", "keys"]);
var META_CHAIN = "meta";
var KEYS_CHAIN = "keys";
var IMPORT_DOMAIN = "import";
var DOMAIN = /^[a-z0-9-]{1,32}$/;
var CHAIN_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
/** Aver's block in a capsule's content; null where there is none. */
function readBlock(content) {
	const block = at(content, "context", "environment", "aver");
	return isObject(block) ? block : null;
}
/** The kind of a record. Without a block it follows from the type: `call`, `turn` or `record`. */
function readKind(content) {
	const kind = readBlock(content)?.get("kind");
	if (typeof kind === "string") return kind;
	const type = content.get("type");
	return type === "tool" ? "call" : type === "chat" ? "turn" : "record";
}
/** The value under these keys, one inside the other; undefined where a key or an object is missing. */
function at(value, ...keys) {
	for (const key of keys) {
		if (!isObject(value)) return void 0;
		value = value.get(key);
	}
	return value;
}
/** Domain and id; a reserved chain is its own domain and id. */
function splitChainName(name) {
	const dot = name.indexOf(".");
	return dot < 0 ? [name, name] : [name.slice(0, dot), name.slice(dot + 1) || name.slice(0, dot)];
}
/** The domain of a chain's name. */
function domainOf(name) {
	return name.split(".", 1)[0];
}
/** A chain name for any identifier: the identifier itself where a chain name can hold it, otherwise its digest. */
function chainName(domain, identifier) {
	const id = CHAIN_ID.test(identifier) ? identifier : `x-${sha256Hex(identifier).slice(0, 32)}`;
	return DOMAIN.test(domain) ? `${domain}.${id}` : null;
}
// node_modules/@noble/curves/abstract/curve.js
/*! noble-curves - MIT License (c) 2022 Paul Miller (paulmillr.com) */
var _0n$2 = /* @__PURE__ */ BigInt(0);
var _1n$2 = /* @__PURE__ */ BigInt(1);
var _4n$2 = /* @__PURE__ */ BigInt(4);
var BLIND_BYTES = 16;
var BLIND_BITS = 128;
var FW_WINDOW = 5;
var TABLE_BYTES_MAX = /* @__PURE__ */ (() => 2 ** 31)();
function validatePointCons(Point) {
	const pc = Point;
	if (typeof pc !== "function") throw new TypeError("\"Point\" expected constructor, got type=" + typeof Point);
	afunction(pc.fromAffine, "Point.fromAffine");
	afunction(pc.fromBytes, "Point.fromBytes");
	afunction(pc.fromHex, "Point.fromHex");
	aobject$1(pc.BASE, "Point.BASE");
	aobject$1(pc.ZERO, "Point.ZERO");
	validateField(pc.Fp);
	validateField(pc.Fn);
}
function normalizeZ(c, points) {
	validatePointCons(c);
	validateMSMPoints(points, c);
	const invertedZs = FpInvertBatch(c.Fp, points.map((p) => p.Z));
	return points.map((p, i) => c.fromAffine(p.toAffine(invertedZs[i])));
}
function validateW(W, bits, min = 1) {
	if (!Number.isSafeInteger(W) || W < min || W > bits) throw new Error("invalid window size, expected [" + min + ".." + bits + "], got W=" + W);
}
function validateTableBytes(numPoints, fpBytes) {
	const bytes = numPoints * (4 * fpBytes + 128);
	if (bytes > TABLE_BYTES_MAX) throw new Error("invalid window size: table would need ~" + Math.ceil(bytes / 2 ** 20) + " MiB, max " + TABLE_BYTES_MAX / 2 ** 20 + " MiB");
}
function probeRandomBytes(randomBytes, length) {
	if (randomBytes === void 0) return void 0;
	afunction(randomBytes, "randomBytes");
	try {
		const probe = randomBytes(length);
		if (!isBytes(probe) || probe.length !== length) return void 0;
	} catch {
		return;
	}
	return randomBytes;
}
function validateMSMPoints(points, c) {
	aarray$1(points, "points");
	points.forEach((p, i) => {
		if (!(p instanceof c)) throw new Error("invalid point at index " + i);
	});
}
function validateMSMScalars(scalars, field, maxScalar) {
	if (!Array.isArray(scalars)) throw new Error("array of scalars expected");
	scalars.forEach((s, i) => {
		if (!(maxScalar === void 0 ? field.isValid(s) : isPosBig(s) && s < maxScalar)) throw new Error("invalid scalar at index " + i);
	});
}
var pointWindowSizes = /* @__PURE__ */ new WeakMap();
function getWindowSize(P) {
	return pointWindowSizes.get(P) || 1;
}
function oddMultiples(p, size) {
	const dbl = p.double();
	const t = [p];
	for (let j = 1; j < size; j++) t.push(t[j - 1].add(dbl));
	return t;
}
function wnafDigits(n, W) {
	const size = 2 ** W;
	const half = size / 2;
	const mask = BigInt(size - 1);
	const d = [];
	while (n > _0n$2) {
		let w = 0;
		if (n & _1n$2) {
			w = Number(n & mask);
			if (w >= half) w -= size;
			n -= BigInt(w);
		}
		d.push(w);
		n >>= _1n$2;
	}
	return d;
}
function signedWindowDigits(n, W, windows) {
	const size = 2 ** W;
	const half = size / 2;
	const mask = BigInt(size - 1);
	const shiftBy = BigInt(W);
	const d = [];
	for (let w = 0; w < windows; w++) {
		let v = Number(n & mask);
		n >>= shiftBy;
		if (v > half) {
			v -= size;
			n += _1n$2;
		}
		d.push(v);
	}
	if (n !== _0n$2) throw new Error("invalid wnaf");
	return d;
}
function wnafWalk(zero, tables, digits) {
	let max = 0;
	for (const d of digits) max = Math.max(max, d.length);
	let acc = zero;
	for (let bit = max - 1; bit >= 0; bit--) {
		if (bit !== max - 1) acc = acc.double();
		for (let i = 0; i < digits.length; i++) {
			const w = digits[i][bit];
			if (w) {
				const item = tables[i][Math.abs(w) - 1 >> 1];
				acc = acc.add(w < 0 ? item.negate() : item);
			}
		}
	}
	return acc;
}
var ScalarMultiplier = class {
	Point;
	BASE;
	ZERO;
	randomBytes;
	wnafPrecomputes = /* @__PURE__ */ new WeakMap();
	baseCanBeBlinded;
	bits;
	constructor(Point, randomBytes) {
		validatePointCons(Point);
		this.randomBytes = probeRandomBytes(randomBytes, BLIND_BYTES);
		this.Point = Point;
		this.BASE = Point.BASE;
		this.ZERO = Point.ZERO;
		this.bits = Point.Fn.BITS;
	}
	buildWnafTable(point, W, bits) {
		const windows = Math.ceil(bits / W) + 1;
		const half = 2 ** (W - 1);
		const comp = [];
		let base = point;
		for (let w = 0; w < windows; w++) {
			let acc = base;
			for (let i = 0; i < half; i++) {
				comp.push(acc);
				acc = acc.add(base);
			}
			base = comp[comp.length - 1].double();
		}
		return {
			W,
			bits,
			windows,
			comp
		};
	}
	wnafCachedCT(precomputes, n) {
		const { W, windows, comp } = precomputes;
		const half = 2 ** (W - 1);
		const digits = signedWindowDigits(n, W, windows);
		let p = this.ZERO;
		let f = this.BASE;
		for (let w = 0; w < windows; w++) {
			const digit = digits[w];
			const start = w * half;
			const idx = Math.abs(digit) - 1;
			let sel = comp[start];
			for (let i = 1; i < half; i++) sel = i === idx ? comp[start + i] : sel;
			const neg = sel.negate();
			if (digit === 0) f = f.add(comp[start]);
			else p = p.add(digit < 0 ? neg : sel);
		}
		return {
			p,
			f
		};
	}
	getWnafPrecomputes(W, point, bits, transform) {
		let entries = this.wnafPrecomputes.get(point);
		let comp = entries?.find((entry) => entry.W === W && entry.bits === bits);
		if (!comp) {
			comp = this.buildWnafTable(point, W, bits);
			if (typeof transform === "function") comp = {
				...comp,
				comp: transform(comp.comp)
			};
			if (!entries) {
				entries = [];
				this.wnafPrecomputes.set(point, entries);
			}
			entries.push(comp);
		}
		return comp;
	}
	assertPoint(point) {
		if (!(point instanceof this.Point)) throw new TypeError("\"point\" expected Point instance, got type=" + typeof point);
	}
	validateMulInput(point, scalar) {
		this.assertPoint(point);
		if (!inRange(scalar, _1n$2, this.Point.Fn.ORDER)) throw new Error("invalid scalar");
	}
	runCT(point, n, bits, transform) {
		const W = getWindowSize(point);
		if (W === 1) return this.fixedWindowCT(point, n, bits);
		return this.wnafCachedCT(this.getWnafPrecomputes(W, point, bits, transform), n);
	}
	mulCT(point, scalar, transform) {
		this.validateMulInput(point, scalar);
		return this.runCT(point, scalar, this.bits, transform);
	}
	mulCTBlinded(point, scalar, transform) {
		this.validateMulInput(point, scalar);
		if (this.randomBytes === void 0) throw new Error("randomBytes is required for scalar blinding");
		const bits = this.Point.Fn.BITS + BLIND_BITS;
		const blind = this.randomBytes(BLIND_BYTES);
		if (!isBytes(blind) || blind.length !== BLIND_BYTES) throw new Error("randomBytes returned invalid byte array");
		blind[0] = blind[0] & 63 | 128;
		const n = scalar + bytesToNumberBE(blind) * this.Point.Fn.ORDER;
		return this.runCT(point, n, bits, transform);
	}
	fixedWindowCT(point, n, bits) {
		const W = FW_WINDOW;
		const size = 32;
		const mask = bitMask(W);
		const table = new Array(size);
		table[0] = this.ZERO;
		for (let i = 1; i < size; i++) table[i] = table[i - 1].add(point);
		const windows = Math.ceil(bits / W);
		let acc = this.ZERO;
		for (let window = windows - 1; window >= 0; window--) {
			if (window !== windows - 1) for (let d = 0; d < W; d++) acc = acc.double();
			const digit = Number(n >> BigInt(window * W) & mask);
			let sel = table[0];
			for (let i = 1; i < size; i++) sel = i === digit ? table[i] : sel;
			acc = acc.add(sel);
		}
		return {
			p: acc,
			f: acc
		};
	}
	shouldBlind(point, cofactor) {
		if (this.randomBytes === void 0) return false;
		if (cofactor === _1n$2) return true;
		if (point !== this.BASE) return false;
		if (this.baseCanBeBlinded === void 0) this.baseCanBeBlinded = this.mulUnsafe(this.BASE, this.Point.Fn.ORDER).is0();
		return this.baseCanBeBlinded;
	}
	mulSecret(point, scalar, cofactor, transform) {
		return this.shouldBlind(point, cofactor) ? this.mulCTBlinded(point, scalar, transform) : this.mulCT(point, scalar, transform);
	}
	mulUnsafe(point, scalar, transform) {
		this.assertPoint(point);
		if (!isPosBig(scalar)) throw new Error("invalid scalar");
		const W = getWindowSize(point);
		if (W === 1 || scalar >= this.Point.Fn.ORDER) return mulAddUnsafe(this.Point, [point], [scalar], true);
		const precomputes = this.getWnafPrecomputes(W, point, this.bits, transform);
		return this.wnafCachedCT(precomputes, scalar).p;
	}
	setWindowSize(point, W) {
		this.assertPoint(point);
		validateW(W, this.bits);
		validateTableBytes((Math.ceil((this.bits + BLIND_BITS) / W) + 1) * 2 ** (W - 1), this.Point.Fp.BYTES);
		pointWindowSizes.set(point, W);
		this.wnafPrecomputes.delete(point);
	}
	hasWindowSize(point) {
		return getWindowSize(point) !== 1;
	}
};
function mulAddUnsafe(c, points, scalars, allowOversized = false) {
	validatePointCons(c);
	validateMSMPoints(points, c);
	abool(allowOversized, "allowOversized");
	validateMSMScalars(scalars, c.Fn, allowOversized ? c.Fn.ORDER ** _4n$2 : void 0);
	if (points.length !== scalars.length) throw new Error("arrays of points and scalars must have equal length");
	const tables = points.map((p) => oddMultiples(p, 4));
	const digits = scalars.map((n) => wnafDigits(n, 4));
	return wnafWalk(c.ZERO, tables, digits);
}
function createField(order, field, isLE) {
	if (field) {
		if (field.ORDER !== order) throw new Error("Field.ORDER must match order: Fp == p, Fn == n");
		validateField(field);
		return field;
	} else return Field(order, { isLE });
}
function createCurveFields(type, CURVE, curveOpts = {}, FpFnLE) {
	if (type !== "weierstrass" && type !== "edwards") throw new Error("expected curve type \"weierstrass\" or \"edwards\"");
	if (FpFnLE === void 0) FpFnLE = type === "edwards";
	if (!CURVE || typeof CURVE !== "object") throw new Error(`expected valid ${type} CURVE object`);
	validateObject(curveOpts);
	for (const p of [
		"p",
		"n",
		"h"
	]) {
		const val = CURVE[p];
		if (!(isPosBig(val) && val !== _0n$2)) throw new Error(`CURVE.${p} must be positive bigint`);
	}
	const Fp = createField(CURVE.p, curveOpts.Fp, FpFnLE);
	const Fn = createField(CURVE.n, curveOpts.Fn, FpFnLE);
	const params = [
		"Gx",
		"Gy",
		"a",
		type === "weierstrass" ? "b" : "d"
	];
	for (const p of params) if (!Fp.isValid(CURVE[p])) throw new Error(`CURVE.${p} must be valid field element of CURVE.Fp`);
	CURVE = Object.freeze(Object.assign({}, CURVE));
	return {
		CURVE,
		Fp,
		Fn
	};
}
// node_modules/@noble/curves/abstract/edwards.js
/*! noble-curves - MIT License (c) 2022 Paul Miller (paulmillr.com) */
var _0n$1 = /* @__PURE__ */ BigInt(0);
var _1n$1 = /* @__PURE__ */ BigInt(1);
var _2n$1 = /* @__PURE__ */ BigInt(2);
var _4n$1 = /* @__PURE__ */ BigInt(4);
var _8n = /* @__PURE__ */ BigInt(8);
function isEdValidXY(Fp, CURVE, x, y) {
	const x2 = Fp.sqr(x);
	const y2 = Fp.sqr(y);
	const left = Fp.add(Fp.mul(CURVE.a, x2), y2);
	const right = Fp.add(Fp.ONE, Fp.mul(CURVE.d, Fp.mul(x2, y2)));
	return Fp.eql(left, right);
}
function edwards(params, extraOpts = {}) {
	validateObject(extraOpts, {}, {}, "extraOpts");
	const opts = extraOpts;
	const validated = createCurveFields("edwards", params, opts, opts.FpFnLE);
	const { Fp, Fn } = validated;
	let CURVE = validated.CURVE;
	const { h: cofactor } = CURVE;
	if (FpLegendre(Fp, CURVE.a) !== 1) throw new Error("edwards: CURVE.a must be a square in Fp for complete addition formulas");
	if (FpLegendre(Fp, CURVE.d) !== -1) throw new Error("edwards: CURVE.d must be a non-square in Fp for complete addition formulas");
	validateObject(opts, {}, {
		uvRatio: "function",
		randomBytes: "function"
	});
	const randomBytes$4 = opts.randomBytes === void 0 ? randomBytes : opts.randomBytes;
	const MASK = _2n$1 << BigInt(Fp.BYTES * 8) - _1n$1;
	function isOdd(n) {
		if (!Fp.isOdd) throw new Error("Field does not have .isOdd()");
		return Fp.isOdd(n);
	}
	const uvRatio = opts.uvRatio === void 0 ? (u, v) => {
		try {
			return {
				isValid: true,
				value: Fp.sqrt(Fp.div(u, v))
			};
		} catch (e) {
			return {
				isValid: false,
				value: _0n$1
			};
		}
	} : opts.uvRatio;
	if (!isEdValidXY(Fp, CURVE, CURVE.Gx, CURVE.Gy)) throw new Error("bad curve params: generator point");
	const mulA = Fp.eql(CURVE.a, Fp.neg(Fp.ONE)) ? (x) => Fp.neg(x) : Fp.eql(CURVE.a, Fp.ONE) ? (x) => x : (x) => Fp.mul(CURVE.a, x);
	function acoord(title, n, banZero = false) {
		const min = banZero ? _1n$1 : _0n$1;
		aInRange("coordinate " + title, n, min, MASK);
		return n;
	}
	function aedpoint(other) {
		if (!(other instanceof Point)) throw new Error("EdwardsPoint expected");
	}
	class Point {
		static BASE = new Point(CURVE.Gx, CURVE.Gy, Fp.ONE, Fp.mul(CURVE.Gx, CURVE.Gy));
		static ZERO = new Point(Fp.ZERO, Fp.ONE, Fp.ONE, Fp.ZERO);
		static Fp = Fp;
		static Fn = Fn;
		X;
		Y;
		Z;
		T;
		constructor(X, Y, Z, T) {
			this.X = acoord("x", X);
			this.Y = acoord("y", Y);
			this.Z = acoord("z", Z, true);
			this.T = acoord("t", T);
			Object.freeze(this);
		}
		static CURVE() {
			return CURVE;
		}
		static fromAffine(p) {
			if (p instanceof Point) throw new Error("extended point not allowed");
			const { x, y } = p || {};
			acoord("x", x);
			acoord("y", y);
			return new Point(x, y, Fp.ONE, Fp.mul(x, y));
		}
		static fromBytes(bytes, zip215 = false) {
			const len = Fp.BYTES;
			const { a, d } = CURVE;
			bytes = copyBytes(abytes(bytes, len, "point"));
			abool(zip215, "zip215");
			const normed = copyBytes(bytes);
			const lastByte = bytes[len - 1];
			normed[len - 1] = lastByte & -129;
			const y = bytesToNumberLE(normed);
			aInRange("point.y", y, _0n$1, zip215 ? MASK : Fp.ORDER);
			const y2 = Fp.sqr(y);
			const u = Fp.sub(y2, Fp.ONE);
			const v = Fp.sub(Fp.mulN(d, y2), a);
			let { isValid, value: x } = uvRatio(u, v);
			if (!isValid) throw new Error("bad point: invalid y coordinate");
			const isXOdd = isOdd(x);
			const isLastByteOdd = (lastByte & 128) !== 0;
			if (!zip215 && Fp.is0(x) && isLastByteOdd) throw new Error("bad point: x=0 and x_0=1");
			if (isLastByteOdd !== isXOdd) x = Fp.neg(x);
			return Point.fromAffine({
				x,
				y
			});
		}
		static fromHex(hex, zip215 = false) {
			return Point.fromBytes(hexToBytes(hex), zip215);
		}
		get x() {
			return this.toAffine().x;
		}
		get y() {
			return this.toAffine().y;
		}
		precompute(windowSize = 6, isLazy = true) {
			wnaf.setWindowSize(this, windowSize);
			if (!isLazy) this.multiply(_2n$1);
			return this;
		}
		assertValidity() {
			const p = this;
			const { a, d } = CURVE;
			if (p.is0()) throw new Error("bad point: ZERO");
			const { X, Y, Z, T } = p;
			const X2 = Fp.sqr(X);
			const Y2 = Fp.sqr(Y);
			const Z2 = Fp.sqr(Z);
			const Z4 = Fp.sqr(Z2);
			const aX2 = Fp.mul(X2, a);
			const left = Fp.mul(Fp.add(aX2, Y2), Z2);
			const right = Fp.add(Z4, Fp.mul(d, Fp.mul(X2, Y2)));
			if (!Fp.eql(left, right)) throw new Error("bad point: equation left != right (1)");
			const XY = Fp.mul(X, Y);
			const ZT = Fp.mul(Z, T);
			if (!Fp.eql(XY, ZT)) throw new Error("bad point: equation left != right (2)");
		}
		equals(other) {
			aedpoint(other);
			const { X: X1, Y: Y1, Z: Z1 } = this;
			const { X: X2, Y: Y2, Z: Z2 } = other;
			const X1Z2 = Fp.mul(X1, Z2);
			const X2Z1 = Fp.mul(X2, Z1);
			const Y1Z2 = Fp.mul(Y1, Z2);
			const Y2Z1 = Fp.mul(Y2, Z1);
			return Fp.eql(X1Z2, X2Z1) && Fp.eql(Y1Z2, Y2Z1);
		}
		is0() {
			return this.equals(Point.ZERO);
		}
		negate() {
			return new Point(Fp.neg(this.X), this.Y, this.Z, Fp.neg(this.T));
		}
		double() {
			const { X: X1, Y: Y1, Z: Z1 } = this;
			const A = Fp.sqr(X1);
			const B = Fp.sqr(Y1);
			const C = Fp.mul(Fp.sqr(Z1), _2n$1);
			const D = mulA(A);
			const x1y1 = Fp.addN(X1, Y1);
			const E = Fp.sub(Fp.subN(Fp.sqr(x1y1), A), B);
			const G = Fp.addN(D, B);
			const F = Fp.subN(G, C);
			const H = Fp.subN(D, B);
			const X3 = Fp.mul(E, F);
			const Y3 = Fp.mul(G, H);
			const T3 = Fp.mul(E, H);
			const Z3 = Fp.mul(F, G);
			return new Point(X3, Y3, Z3, T3);
		}
		add(other) {
			aedpoint(other);
			const { d } = CURVE;
			const { X: X1, Y: Y1, Z: Z1, T: T1 } = this;
			const { X: X2, Y: Y2, Z: Z2, T: T2 } = other;
			const A = Fp.mul(X1, X2);
			const B = Fp.mul(Y1, Y2);
			const C = Fp.mul(Fp.mulN(T1, d), T2);
			const D = Fp.mul(Z1, Z2);
			const E = Fp.sub(Fp.subN(Fp.mulN(Fp.addN(X1, Y1), Fp.addN(X2, Y2)), A), B);
			const F = Fp.subN(D, C);
			const G = Fp.addN(D, C);
			const H = Fp.sub(B, mulA(A));
			const X3 = Fp.mul(E, F);
			const Y3 = Fp.mul(G, H);
			const T3 = Fp.mul(E, H);
			const Z3 = Fp.mul(F, G);
			return new Point(X3, Y3, Z3, T3);
		}
		subtract(other) {
			aedpoint(other);
			return this.add(other.negate());
		}
		multiply(scalar) {
			if (!Fn.isValidNot0(scalar)) throw new RangeError("invalid scalar: expected 1 <= sc < curve.n");
			const { p, f } = wnaf.mulSecret(this, scalar, cofactor, normalize);
			return normalize([p, f])[0];
		}
		multiplyUnsafe(scalar) {
			if (!Fn.isValid(scalar)) throw new RangeError("invalid scalar: expected 0 <= sc < curve.n");
			if (scalar === _0n$1) return Point.ZERO;
			if (this.is0() || scalar === _1n$1) return this;
			return wnaf.mulUnsafe(this, scalar, normalize);
		}
		isSmallOrder() {
			return this.clearCofactor().is0();
		}
		isTorsionFree() {
			return wnaf.mulUnsafe(this, CURVE.n).is0();
		}
		toAffine(invertedZ) {
			const p = this;
			let iz = invertedZ;
			if (iz != null && typeof iz !== "bigint") throw new TypeError("\"invertedZ\" expected bigint, got type=" + typeof iz);
			const { X, Y, Z } = p;
			const is0 = p.is0();
			if (iz == null) iz = is0 ? Fp.create(_8n) : Fp.inv(Z);
			const x = Fp.mul(X, iz);
			const y = Fp.mul(Y, iz);
			const zz = Fp.mul(Z, iz);
			if (is0) return {
				x: Fp.ZERO,
				y: Fp.ONE
			};
			if (!Fp.eql(zz, Fp.ONE)) throw new Error("invZ was invalid");
			return {
				x,
				y
			};
		}
		clearCofactor() {
			if (cofactor === _1n$1) return this;
			if (cofactor === _2n$1) return this.double();
			if (cofactor === _4n$1) return this.double().double();
			if (cofactor === _8n) return this.double().double().double();
			return this.multiplyUnsafe(cofactor);
		}
		toBytes() {
			const { x, y } = this.toAffine();
			const bytes = Fp.toBytes(y);
			bytes[bytes.length - 1] |= isOdd(x) ? 128 : 0;
			return bytes;
		}
		toHex() {
			return bytesToHex(this.toBytes());
		}
		toString() {
			return `<Point ${this.is0() ? "ZERO" : this.toHex()}>`;
		}
	}
	const normalize = (points) => normalizeZ(Point, points);
	const wnaf = new ScalarMultiplier(Point, randomBytes$4);
	if (wnaf.bits >= 6) Point.BASE.precompute(6);
	Object.freeze(Point.prototype);
	Object.freeze(Point);
	return Point;
}
// node_modules/@noble/curves/abstract/weierstrass.js
/*! noble-curves - MIT License (c) 2022 Paul Miller (paulmillr.com) */
var divNearest = (num, den) => (num + (num >= 0 ? den : -den) / _2n) / den;
function _splitEndoScalar(k, basis, n) {
	aInRange("scalar", k, _0n, n);
	const [[a1, b1], [a2, b2]] = basis;
	const c1 = divNearest(b2 * k, n);
	const c2 = divNearest(-b1 * k, n);
	let k1 = k - c1 * a1 - c2 * a2;
	let k2 = -c1 * b1 - c2 * b2;
	const k1neg = k1 < _0n;
	const k2neg = k2 < _0n;
	if (k1neg) k1 = -k1;
	if (k2neg) k2 = -k2;
	const MAX_NUM = bitMask(Math.ceil(bitLen(n) / 2)) + _1n;
	if (k1 < _0n || k1 >= MAX_NUM || k2 < _0n || k2 >= MAX_NUM) throw new Error("splitScalar (endomorphism): failed for k");
	return {
		k1neg,
		k1,
		k2neg,
		k2
	};
}
var _0n = /* @__PURE__ */ BigInt(0);
var _1n = /* @__PURE__ */ BigInt(1);
var _2n = /* @__PURE__ */ BigInt(2);
var _3n = /* @__PURE__ */ BigInt(3);
var _4n = /* @__PURE__ */ BigInt(4);
function weierstrass(params, extraOpts = {}) {
	const validated = createCurveFields("weierstrass", params, extraOpts);
	const Fp = validated.Fp;
	const Fn = validated.Fn;
	let CURVE = validated.CURVE;
	const { h: cofactor, n: CURVE_ORDER } = CURVE;
	validateObject(extraOpts, {}, {
		allowInfinityPoint: "boolean",
		clearCofactor: "function",
		isTorsionFree: "function",
		fromBytes: "function",
		toBytes: "function",
		endo: "object",
		randomBytes: "function"
	});
	const { endo: endoOpts, allowInfinityPoint, clearCofactor, isTorsionFree, fromBytes, toBytes } = extraOpts;
	const randomBytes$2 = extraOpts.randomBytes === void 0 ? randomBytes : extraOpts.randomBytes;
	if (endoOpts) {
		if (!Fp.is0(CURVE.a) || typeof endoOpts.beta !== "bigint" || !Array.isArray(endoOpts.basises)) throw new Error("invalid endo: expected \"beta\": bigint and \"basises\": array");
	}
	const endo = endoOpts ? {
		beta: endoOpts.beta,
		basises: endoOpts.basises.map((basis) => [...basis])
	} : void 0;
	const lengths = getWLengths(Fp, Fn);
	function assertCompressionIsSupported() {
		if (!Fp.isOdd) throw new Error("compression is not supported: Field does not have .isOdd()");
	}
	function pointToBytes(_c, point, isCompressed) {
		if (point.is0()) {
			if (!allowInfinityPoint) throw new Error("bad point: ZERO");
			return Uint8Array.of(0);
		}
		const { x, y } = point.toAffine();
		const bx = Fp.toBytes(x);
		abool(isCompressed, "isCompressed");
		if (isCompressed) {
			assertCompressionIsSupported();
			return concatBytes(pprefix(!Fp.isOdd(y)), bx);
		} else return concatBytes(Uint8Array.of(4), bx, Fp.toBytes(y));
	}
	function pointFromBytes(bytes) {
		abytes(bytes, void 0, "Point");
		const { publicKey: comp, publicKeyUncompressed: uncomp } = lengths;
		const length = bytes.length;
		const head = bytes[0];
		const tail = bytes.subarray(1);
		if (allowInfinityPoint && length === 1 && head === 0) return {
			x: Fp.ZERO,
			y: Fp.ZERO
		};
		if (length === comp && (head === 2 || head === 3)) {
			const x = Fp.fromBytes(tail);
			if (!Fp.isValid(x)) throw new Error("bad point: is not on curve, wrong x");
			const y2 = weierstrassEquation(x);
			let y;
			try {
				y = Fp.sqrt(y2);
			} catch (sqrtError) {
				const err = sqrtError instanceof Error ? ": " + sqrtError.message : "";
				throw new Error("bad point: is not on curve, sqrt error" + err);
			}
			assertCompressionIsSupported();
			const evenY = Fp.isOdd(y);
			if ((head & 1) === 1 !== evenY) y = Fp.neg(y);
			return {
				x,
				y
			};
		} else if (length === uncomp && head === 4) {
			const L = Fp.BYTES;
			const x = Fp.fromBytes(tail.subarray(0, L));
			const y = Fp.fromBytes(tail.subarray(L, L * 2));
			if (!isValidXY(x, y)) throw new Error("bad point: is not on curve");
			return {
				x,
				y
			};
		} else throw new Error(`bad point: got length ${length}, expected compressed=${comp} or uncompressed=${uncomp}`);
	}
	const encodePoint = toBytes === void 0 ? pointToBytes : toBytes;
	const decodePoint = fromBytes === void 0 ? pointFromBytes : fromBytes;
	const b3 = Fp.mul(CURVE.b, _3n);
	const mulA = Fp.is0(CURVE.a) ? (_) => Fp.ZERO : (x) => Fp.mul(CURVE.a, x);
	function weierstrassEquation(x) {
		const x2 = Fp.sqr(x);
		const x3 = Fp.mul(x2, x);
		return Fp.add(Fp.add(x3, Fp.mul(x, CURVE.a)), CURVE.b);
	}
	function isValidXY(x, y) {
		const left = Fp.sqr(y);
		const right = weierstrassEquation(x);
		return Fp.eql(left, right);
	}
	if (!isValidXY(CURVE.Gx, CURVE.Gy)) throw new Error("bad curve params: generator point");
	const _4a3 = Fp.mul(Fp.pow(CURVE.a, _3n), _4n);
	const _27b2 = Fp.mul(Fp.sqr(CURVE.b), BigInt(27));
	if (Fp.is0(Fp.add(_4a3, _27b2))) throw new Error("bad curve params: a or b");
	function acoord(title, n, banZero = false) {
		if (!Fp.isValid(n) || banZero && Fp.is0(n)) throw new Error(`bad point coordinate ${title}`);
		return typeof n === "object" && n !== null ? Fp.create(n) : n;
	}
	function aprjpoint(other) {
		if (!(other instanceof Point)) throw new Error("Weierstrass Point expected");
	}
	function splitEndoScalarN(k) {
		if (!endo || !endo.basises) throw new Error("no endo");
		return _splitEndoScalar(k, endo.basises, Fn.ORDER);
	}
	function pushWnafPair(points, scalars, p, k) {
		if (!Fn.isValid(k)) throw new RangeError("invalid scalar: out of range");
		if (endo) {
			const { k1neg, k1, k2neg, k2 } = splitEndoScalarN(k);
			const psi = new Point(Fp.mul(p.X, endo.beta), p.Y, p.Z);
			points.push(k1neg ? p.negate() : p, k2neg ? psi.negate() : psi);
			scalars.push(k1, k2);
		} else {
			points.push(p);
			scalars.push(k);
		}
	}
	const validityCache = /* @__PURE__ */ new WeakSet();
	class Point {
		static BASE = new Point(CURVE.Gx, CURVE.Gy, Fp.ONE);
		static ZERO = new Point(Fp.ZERO, Fp.ONE, Fp.ZERO);
		static Fp = Fp;
		static Fn = Fn;
		X;
		Y;
		Z;
		constructor(X, Y, Z) {
			this.X = acoord("x", X);
			this.Y = acoord("y", Y, true);
			this.Z = acoord("z", Z);
			Object.freeze(this);
		}
		static CURVE() {
			return CURVE;
		}
		static fromAffine(p) {
			const { x, y } = p || {};
			if (!p || !Fp.isValid(x) || !Fp.isValid(y)) throw new Error("invalid affine point");
			if (p instanceof Point) throw new Error("projective point not allowed");
			if (Fp.is0(x) && Fp.is0(y)) return Point.ZERO;
			return new Point(x, y, Fp.ONE);
		}
		static fromBytes(bytes) {
			const P = Point.fromAffine(decodePoint(abytes(bytes, void 0, "point")));
			P.assertValidity();
			return P;
		}
		static fromHex(hex) {
			return Point.fromBytes(hexToBytes(hex));
		}
		get x() {
			return this.toAffine().x;
		}
		get y() {
			return this.toAffine().y;
		}
		precompute(windowSize = 6, isLazy = true) {
			wnaf.setWindowSize(this, windowSize);
			if (!isLazy) this.multiply(_3n);
			return this;
		}
		assertValidity() {
			const p = this;
			if (p.is0()) {
				if (allowInfinityPoint && Fp.is0(p.X) && Fp.eql(p.Y, Fp.ONE) && Fp.is0(p.Z)) return;
				throw new Error("bad point: ZERO");
			}
			if (validityCache.has(p)) return;
			const { x, y } = p.toAffine();
			if (!Fp.isValid(x) || !Fp.isValid(y)) throw new Error("bad point: x or y not field elements");
			if (!isValidXY(x, y)) throw new Error("bad point: equation left != right");
			if (!p.isTorsionFree()) throw new Error("bad point: not in prime-order subgroup");
			validityCache.add(p);
		}
		hasEvenY() {
			const { y } = this.toAffine();
			if (!Fp.isOdd) throw new Error("Field doesn't support isOdd");
			return !Fp.isOdd(y);
		}
		equals(other) {
			aprjpoint(other);
			const { X: X1, Y: Y1, Z: Z1 } = this;
			const { X: X2, Y: Y2, Z: Z2 } = other;
			const U1 = Fp.eql(Fp.mul(X1, Z2), Fp.mul(X2, Z1));
			const U2 = Fp.eql(Fp.mul(Y1, Z2), Fp.mul(Y2, Z1));
			return U1 && U2;
		}
		negate() {
			return new Point(this.X, Fp.neg(this.Y), this.Z);
		}
		double() {
			const { X: X1, Y: Y1, Z: Z1 } = this;
			let X3 = Fp.ZERO, Y3 = Fp.ZERO, Z3 = Fp.ZERO;
			let t0 = Fp.mul(X1, X1);
			let t1 = Fp.mul(Y1, Y1);
			let t2 = Fp.mul(Z1, Z1);
			let t3 = Fp.mul(X1, Y1);
			t3 = Fp.add(t3, t3);
			Z3 = Fp.mul(X1, Z1);
			Z3 = Fp.add(Z3, Z3);
			X3 = mulA(Z3);
			Y3 = Fp.mul(b3, t2);
			Y3 = Fp.add(X3, Y3);
			X3 = Fp.sub(t1, Y3);
			Y3 = Fp.add(t1, Y3);
			Y3 = Fp.mul(X3, Y3);
			X3 = Fp.mul(t3, X3);
			Z3 = Fp.mul(b3, Z3);
			t2 = mulA(t2);
			t3 = Fp.sub(t0, t2);
			t3 = mulA(t3);
			t3 = Fp.add(t3, Z3);
			Z3 = Fp.add(t0, t0);
			t0 = Fp.add(Z3, t0);
			t0 = Fp.add(t0, t2);
			t0 = Fp.mul(t0, t3);
			Y3 = Fp.add(Y3, t0);
			t2 = Fp.mul(Y1, Z1);
			t2 = Fp.add(t2, t2);
			t0 = Fp.mul(t2, t3);
			X3 = Fp.sub(X3, t0);
			Z3 = Fp.mul(t2, t1);
			Z3 = Fp.add(Z3, Z3);
			Z3 = Fp.add(Z3, Z3);
			return new Point(X3, Y3, Z3);
		}
		add(other) {
			aprjpoint(other);
			const { X: X1, Y: Y1, Z: Z1 } = this;
			const { X: X2, Y: Y2, Z: Z2 } = other;
			let X3 = Fp.ZERO, Y3 = Fp.ZERO, Z3 = Fp.ZERO;
			let t0 = Fp.mul(X1, X2);
			let t1 = Fp.mul(Y1, Y2);
			let t2 = Fp.mul(Z1, Z2);
			let t3 = Fp.add(X1, Y1);
			let t4 = Fp.add(X2, Y2);
			t3 = Fp.mul(t3, t4);
			t4 = Fp.add(t0, t1);
			t3 = Fp.sub(t3, t4);
			t4 = Fp.add(X1, Z1);
			let t5 = Fp.add(X2, Z2);
			t4 = Fp.mul(t4, t5);
			t5 = Fp.add(t0, t2);
			t4 = Fp.sub(t4, t5);
			t5 = Fp.add(Y1, Z1);
			X3 = Fp.add(Y2, Z2);
			t5 = Fp.mul(t5, X3);
			X3 = Fp.add(t1, t2);
			t5 = Fp.sub(t5, X3);
			Z3 = mulA(t4);
			X3 = Fp.mul(b3, t2);
			Z3 = Fp.add(X3, Z3);
			X3 = Fp.sub(t1, Z3);
			Z3 = Fp.add(t1, Z3);
			Y3 = Fp.mul(X3, Z3);
			t1 = Fp.add(t0, t0);
			t1 = Fp.add(t1, t0);
			t2 = mulA(t2);
			t4 = Fp.mul(b3, t4);
			t1 = Fp.add(t1, t2);
			t2 = Fp.sub(t0, t2);
			t2 = mulA(t2);
			t4 = Fp.add(t4, t2);
			t0 = Fp.mul(t1, t4);
			Y3 = Fp.add(Y3, t0);
			t0 = Fp.mul(t5, t4);
			X3 = Fp.mul(t3, X3);
			X3 = Fp.sub(X3, t0);
			t0 = Fp.mul(t3, t1);
			Z3 = Fp.mul(t5, Z3);
			Z3 = Fp.add(Z3, t0);
			return new Point(X3, Y3, Z3);
		}
		subtract(other) {
			aprjpoint(other);
			return this.add(other.negate());
		}
		is0() {
			return this.equals(Point.ZERO);
		}
		multiply(scalar) {
			if (!Fn.isValidNot0(scalar)) throw new RangeError("invalid scalar: out of range");
			const { p, f } = wnaf.mulSecret(this, scalar, cofactor, normalize);
			return normalize([p, f])[0];
		}
		multiplyUnsafe(scalar) {
			const p = this;
			const sc = scalar;
			if (!Fn.isValid(sc)) throw new RangeError("invalid scalar: out of range");
			if (sc === _0n || p.is0()) return Point.ZERO;
			if (sc === _1n) return p;
			if (wnaf.hasWindowSize(this)) return wnaf.mulUnsafe(p, sc, normalize);
			const points = [];
			const scalars = [];
			pushWnafPair(points, scalars, p, sc);
			return mulAddUnsafe(Point, points, scalars);
		}
		mulAddUnsafe(a, other, b) {
			aprjpoint(other);
			const points = [];
			const scalars = [];
			pushWnafPair(points, scalars, this, a);
			pushWnafPair(points, scalars, other, b);
			return mulAddUnsafe(Point, points, scalars);
		}
		toAffine(invertedZ) {
			const p = this;
			let iz = invertedZ;
			if (iz != null && !Fp.isValid(iz)) throw new RangeError("\"invertedZ\" expected valid field element");
			const { X, Y, Z } = p;
			if (Fp.eql(Z, Fp.ONE)) return {
				x: X,
				y: Y
			};
			const is0 = p.is0();
			if (iz == null) iz = is0 ? Fp.ONE : Fp.inv(Z);
			const x = Fp.mul(X, iz);
			const y = Fp.mul(Y, iz);
			const zz = Fp.mul(Z, iz);
			if (is0) return {
				x: Fp.ZERO,
				y: Fp.ZERO
			};
			if (!Fp.eql(zz, Fp.ONE)) throw new Error("invZ was invalid");
			return {
				x,
				y
			};
		}
		isTorsionFree() {
			if (cofactor === _1n) return true;
			if (isTorsionFree) return isTorsionFree(Point, this);
			return wnaf.mulUnsafe(this, CURVE_ORDER).is0();
		}
		clearCofactor() {
			if (cofactor === _1n) return this;
			if (clearCofactor) return clearCofactor(Point, this);
			return this.multiplyUnsafe(cofactor);
		}
		isSmallOrder() {
			if (cofactor === _1n) return this.is0();
			return this.clearCofactor().is0();
		}
		toBytes(isCompressed = true) {
			abool(isCompressed, "isCompressed");
			this.assertValidity();
			return encodePoint(Point, this, isCompressed);
		}
		toHex(isCompressed = true) {
			return bytesToHex(this.toBytes(isCompressed));
		}
		toString() {
			return `<Point ${this.is0() ? "ZERO" : this.toHex()}>`;
		}
	}
	const normalize = (points) => normalizeZ(Point, points);
	const wnaf = new ScalarMultiplier(Point, randomBytes$2);
	if (wnaf.bits >= 6) Point.BASE.precompute(6);
	Object.freeze(Point.prototype);
	Object.freeze(Point);
	return Point;
}
function pprefix(hasEvenY) {
	return Uint8Array.of(hasEvenY ? 2 : 3);
}
function getWLengths(Fp, Fn) {
	return {
		secretKey: Fn.BYTES,
		publicKey: 1 + Fp.BYTES,
		publicKeyUncompressed: 1 + 2 * Fp.BYTES,
		publicKeyHasPrefix: true,
		signature: 2 * Fn.BYTES
	};
}
// src/verify/curves.ts
/**
* The points of edwards25519 and of P-256, from their parameters. noble's ready-made modules bring signing, further curves
* and further protocols: more than the page has room for.
*/
/** The prime of the field. */
var P = 2n ** 255n - 19n;
/** The order of the base point. */
var L = 2n ** 252n + 27742317777372353535851937790883648493n;
var Point = edwards({
	p: P,
	n: L,
	h: 8n,
	a: P - 1n,
	d: 37095705934669439343138083508754565189542113879843219016388785533085940283555n,
	Gx: 15112221349535400772501151409588531511454012693041857206046113283949847762202n,
	Gy: 46316835694926478169428394003475163141307993866256225615783033603165251855960n
});
var P256 = weierstrass({
	p: 115792089210356248762697446949407573530086143415290314195533631308867097853951n,
	n: P256_ORDER,
	h: 1n,
	a: 115792089210356248762697446949407573530086143415290314195533631308867097853948n,
	b: 41058363725152142129326129780047268409114441015993725554835256314039467401291n,
	Gx: 48439561293906451759052585252797914202762949526041747995844080717082404635286n,
	Gy: 36134250956749795798585127919587881956611106672985015071877198253568414405109n
});
// src/verify/ed25519.ts
/**
* Ed25519 by the one rule: S < L, neither A nor R of small order, A canonically encoded, and R = encode([S]B − [k]A) byte
* for byte. The twin of `aver.keys.algorithms`.
*
* The platform's Ed25519 is some thirty times as fast as JavaScript, but answers later and accepts points of small order.
* So this module checks the encodings itself and asks the platform for the equation. `prefetch` asks about many signatures
* at once; `verify` then answers at once, and computes with noble's points what nobody asked for.
*
* `checkPlatform` gives known cases to the platform. If one answer is wrong, or it has no Ed25519, noble computes all.
*/
var SIGNATURE = /^[0-9a-f]{128}$/;
var PUBLIC = /^[0-9a-f]{64}$/;
/** Digits of a signature. Only these are kept by name: parts of another length could spell the name of another question. */
var SIGNATURE_DIGITS = 128;
/** The encodings of points of small order, without the bit of the sign. The last two are not canonical. */
var SMALL_ORDER = /* @__PURE__ */ new Set([
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
]);
/** The hex of the field's prime, little-endian, after its first byte. */
var P_AFTER_FIRST = `${"f".repeat(60)}7f`;
/** Answers that are kept. A slice of a chain has far fewer records. */
var ANSWERS_KEPT = 2e4;
/** Imported public keys that are kept. A chain has a handful of signers. */
var KEYS_KEPT = 64;
/** Whether it has the form of a signature. Checks no key. */
function isSignatureHex(signature) {
	return SIGNATURE.test(signature);
}
function readLittleEndian(bytes) {
	let value = 0n;
	for (let at = bytes.length - 1; at >= 0; at--) value = value << 8n | BigInt(bytes[at]);
	return value;
}
/** The hex of an encoded point without the bit of its sign, which is the highest of the last byte. */
function withoutSign(pointHex) {
	const high = Number.parseInt(pointHex[62], 16) & 7;
	return `${pointHex.slice(0, 62)}${high}${pointHex[63]}`;
}
/** Whether y, an encoded point without its sign, is below the field's prime, whose bytes are ed ff … ff 7f. */
function isBelowP(y) {
	return y.slice(2) !== P_AFTER_FIRST || y.slice(0, 2) < "ed";
}
/** Whether the second half of a signature is below L. Its last byte decides in nearly every case. */
function isBelowL(scalarHex) {
	const last = scalarHex.slice(62);
	return last < "10" || last === "10" && readLittleEndian(fromHex(scalarHex)) < L;
}
/** Whether the encodings are those that the rule allows; the equation is not checked. */
function hasGoodForm(publicHex, signature) {
	if (!PUBLIC.test(publicHex) || !SIGNATURE.test(signature)) return false;
	const key = withoutSign(publicHex);
	if (SMALL_ORDER.has(key) || SMALL_ORDER.has(withoutSign(signature.slice(0, 64)))) return false;
	return isBelowP(key) && isBelowL(signature.slice(64));
}
/** The equation, computed with noble's points: R = encode([S]B − [k]A). */
function holdsByPoints(publicHex, message, signature) {
	if (!hasGoodForm(publicHex, signature)) return false;
	try {
		const key = Point.fromHex(publicHex, true);
		const first = fromHex(signature.slice(0, 64));
		const hashed = new Uint8Array(64 + message.length);
		hashed.set(first);
		hashed.set(fromHex(publicHex), 32);
		hashed.set(message, 64);
		const k = readLittleEndian(sha512(hashed)) % L;
		const s = readLittleEndian(fromHex(signature.slice(64)));
		return toHex(mulAddUnsafe(Point, [Point.BASE, key.negate()], [s, k]).toBytes()) === signature.slice(0, 64);
	} catch {
		return false;
	}
}
/** Whether the bytes encode a point of prime order, canonically: the only ones that a key pair can have. */
function isPrimeOrderPoint(publicHex) {
	try {
		if (!PUBLIC.test(publicHex)) return false;
		const y = withoutSign(publicHex);
		return !SMALL_ORDER.has(y) && isBelowP(y) && Point.fromHex(publicHex, true).isTorsionFree();
	} catch {
		return false;
	}
}
/** Verifies Ed25519 signatures, by the platform where it can be trusted to. */
var Ed25519 = class {
	isPlatformGood = false;
	answers = /* @__PURE__ */ new Map();
	keys = /* @__PURE__ */ new Map();
	/** Give the known cases to the platform. Returns whether it is used from now on. */
	async checkPlatform(cases) {
		this.isPlatformGood = false;
		if (typeof globalThis.crypto?.subtle?.importKey !== "function") return false;
		for (const { public: key, message, signature, valid } of cases) if ((hasGoodForm(key, signature) && await this.askPlatform(key, encoder.encode(message), signature)) !== valid) return false;
		this.isPlatformGood = cases.length > 0;
		return this.isPlatformGood;
	}
	get usesPlatform() {
		return this.isPlatformGood;
	}
	/** Ask the platform about these signatures, all at once, and keep the answers for `verify`. */
	async prefetch(questions) {
		if (!this.isPlatformGood) return;
		if (this.answers.size > ANSWERS_KEPT) this.answers.clear();
		const waiting = [];
		for (const { publicHex, message, signature } of questions) {
			const name = publicHex + signature + message;
			if (this.answers.has(name) || !hasGoodForm(publicHex, signature)) continue;
			waiting.push(this.askPlatform(publicHex, encoder.encode(message), signature).then((isValid) => {
				this.answers.set(name, isValid);
			}));
		}
		await Promise.all(waiting);
	}
	/** Take the answers that another thread gave to these questions, and keep them for `verify`. */
	adopt(questions, answers) {
		if (this.answers.size > ANSWERS_KEPT) this.answers.clear();
		questions.forEach(({ publicHex, message, signature }, at) => {
			if (signature.length === SIGNATURE_DIGITS) this.answers.set(publicHex + signature + message, answers[at] === true);
		});
	}
	/** Whether a signature is valid under the rule. */
	verify(publicHex, message, signature) {
		if (typeof message === "string" && signature.length === SIGNATURE_DIGITS) {
			const known = this.answers.get(publicHex + signature + message);
			if (known !== void 0) return known;
		}
		return holdsByPoints(publicHex, typeof message === "string" ? encoder.encode(message) : message, signature);
	}
	async askPlatform(publicHex, message, signature) {
		try {
			if (this.keys.size > KEYS_KEPT) this.keys.clear();
			let key = this.keys.get(publicHex);
			if (key === void 0) {
				key = crypto.subtle.importKey("raw", fromHex(publicHex), "Ed25519", false, ["verify"]);
				this.keys.set(publicHex, key);
			}
			return await crypto.subtle.verify("Ed25519", await key, fromHex(signature), message);
		} catch {
			return false;
		}
	}
};
var SECTIONS = [
	"trigger",
	"context",
	"reasoning",
	"authority",
	"execution",
	"outcome"
];
var TYPES = [
	"agent",
	"tool",
	"system",
	"kill",
	"workflow",
	"chat",
	"vault",
	"auth"
];
var TRIGGER_TYPES = [
	"user_request",
	"scheduled",
	"system",
	"agent"
];
var AUTHORITY_TYPES = [
	"autonomous",
	"human_approved",
	"policy",
	"escalated",
	"unknown"
];
var STATUSES = [
	"pending",
	"success",
	"failure",
	"partial",
	"blocked"
];
var SCORE_MIN = 1e-4;
var UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
var CPS_TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?\+00:00$/;
var TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?\+00:00$/;
var text$2 = (value) => typeof value === "string" ? null : "must be a string";
var textOrNull = (value) => value === null || typeof value === "string" ? null : "must be a string or null";
var object = (value) => isObject(value) ? null : "must be an object";
var flag = (value) => typeof value === "boolean" ? null : "must be a boolean";
var anything = () => null;
var textList = (value) => !Array.isArray(value) ? "must be an array" : value.every((item) => typeof item === "string") ? null : "must be an array of strings";
var objectList = (value) => !Array.isArray(value) ? "must be an array" : value.every(isObject) ? null : "must be an array of objects";
var count = (value) => !isInteger(value) ? "must be an integer" : value.text.startsWith("-") && value.text !== "-0" ? "may not be negative" : null;
var score = (value) => {
	if (!(value instanceof JsonNumber)) return "must be a number";
	return value.value >= 0 && value.value <= 1 ? null : "lies outside 0.0 to 1.0";
};
var uuid = (value) => text$2(value) ?? (UUID.test(value) ? null : "is not a UUID in lower case with hyphens");
var uuidOrNull = (value) => value === null ? null : uuid(value);
var hashOrNull = (value) => textOrNull(value) ?? (value === null || HEX64.test(value) ? null : "is not 64 lower-case hex digits");
var timestamp = (value) => {
	if (typeof value !== "string") return "must be a string";
	if (!CPS_TIMESTAMP.test(value)) return "is not ISO 8601 in UTC with +00:00";
	return isCalendarTime(value) ? null : "is not a date that exists";
};
var oneOf = (allowed) => (value) => text$2(value) ?? (allowed.includes(value) ? null : `is not one of ${allowed.join(", ")}`);
var TOP_LEVEL = {
	id: uuid,
	type: oneOf(TYPES),
	domain: text$2,
	parent_id: uuidOrNull,
	sequence: count,
	previous_hash: hashOrNull,
	spec_version: oneOf(["1.0"]),
	...Object.fromEntries(SECTIONS.map((name) => [name, object]))
};
Object.keys(TOP_LEVEL);
var SECTION_RULES = {
	trigger: {
		type: oneOf(TRIGGER_TYPES),
		source: text$2,
		timestamp,
		request: text$2,
		correlation_id: textOrNull,
		user_id: textOrNull
	},
	context: {
		agent_id: text$2,
		session_id: textOrNull,
		environment: object
	},
	reasoning: {
		analysis: text$2,
		options: objectList,
		options_considered: textList,
		selected_option: text$2,
		reasoning: text$2,
		confidence: score,
		model: textOrNull,
		prompt_hash: hashOrNull
	},
	authority: {
		type: oneOf(AUTHORITY_TYPES),
		approver: textOrNull,
		policy_reference: textOrNull,
		chain: objectList,
		escalation_reason: textOrNull
	},
	execution: {
		tool_calls: objectList,
		duration_ms: count,
		resources_used: object
	},
	outcome: {
		status: oneOf(STATUSES),
		result: anything,
		summary: text$2,
		error: textOrNull,
		side_effects: textList,
		metrics: object
	}
};
var OPTION = {
	id: text$2,
	description: text$2,
	pros: textList,
	cons: textList,
	estimated_impact: object,
	feasibility: score,
	risks: textList,
	selected: flag,
	rejection_reason: text$2
};
var TOOL_CALL = {
	tool: text$2,
	arguments: object,
	result: anything,
	success: flag,
	duration_ms: count,
	error: textOrNull
};
/** The section keys of CPS. */
var CPS_KEYS = Object.fromEntries(Object.entries(SECTION_RULES).map(([section, rules]) => [section, Object.keys(rules)]));
/**
* The first key or value that CPS itself does not allow; null if there is none. Without `complete`, keys may be missing,
* and options and tool calls are not examined.
*/
function findCpsProblem(content, { complete }) {
	const parts = [[
		"",
		content,
		TOP_LEVEL
	]];
	for (const [name, rules] of Object.entries(SECTION_RULES)) parts.push([
		`${name}.`,
		content.get(name),
		rules
	]);
	const reasoning = content.get("reasoning");
	if (complete) {
		const lists = [[
			"reasoning.options",
			reasoning.get("options"),
			OPTION
		], [
			"execution.tool_calls",
			content.get("execution").get("tool_calls"),
			TOOL_CALL
		]];
		for (const [field, items, rules] of lists) if (Array.isArray(items) && items.every(isObject)) items.forEach((item, at) => parts.push([
			`${field}[${at}].`,
			item,
			rules
		]));
	}
	for (const [prefix, part, rules] of parts) for (const [key, rule] of Object.entries(rules)) {
		const value = part.get(key);
		if (value === void 0) {
			if (complete) return `${prefix}${key} is missing`;
		} else {
			const problem = rule(value);
			if (problem !== null) return `${prefix}${key} ${problem}`;
		}
	}
	return complete ? findSelectionProblem(reasoning) : null;
}
function findSelectionProblem(reasoning) {
	const options = reasoning.get("options");
	const chosen = options.filter((option) => option.get("selected"));
	if (chosen.length > 1) return "reasoning.options: more than one option is marked as selected";
	const selected = reasoning.get("selected_option");
	if (options.length && selected) {
		const named = options.filter((option) => selected === option.get("id") || selected === option.get("description"));
		if (!named.length) return "reasoning.selected_option is none of the options";
		if (chosen.length && !named.includes(chosen[0])) return "reasoning.selected_option is not the option marked as selected";
	}
	return null;
}
/** The rules as a list. Every record is held to them, and making the list anew would take longer than they do. */
var LISTED$1 = new Map([
	TOP_LEVEL,
	OPTION,
	TOOL_CALL,
	...Object.values(SECTION_RULES)
].map((rules) => [rules, Object.entries(rules)]));
/** Whether a part has exactly the keys of the rules, with values that they allow. */
function followsRules(part, rules) {
	const listed = LISTED$1.get(rules);
	if (part.size !== listed.length) return false;
	for (let at = 0; at < listed.length; at++) {
		const rule = listed[at];
		const value = part.get(rule[0]);
		if (value === void 0 || rule[1](value) !== null) return false;
	}
	return true;
}
function isPlainScore(value) {
	return isFloat(value) && (value.value >= SCORE_MIN && value.value <= 1 || value.value === 0);
}
/** Whether a capsule follows all rules by which Aver writes one. False means only that one must look closer. */
function isPlainlyValid(content) {
	if (!isObject(content) || !followsRules(content, TOP_LEVEL)) return false;
	const sections = SECTIONS.map((name) => content.get(name));
	const [trigger, , reasoning, , execution] = sections;
	for (const [at, name] of SECTIONS.entries()) if (!followsRules(sections[at], SECTION_RULES[name])) return false;
	const time = trigger.get("timestamp");
	const sequence = content.get("sequence").value;
	const calls = execution.get("tool_calls");
	return sequence === 0 === (content.get("previous_hash") === null) && TIMESTAMP.test(time) && !time.endsWith(".000000+00:00") && isPlainScore(reasoning.get("confidence")) && calls.every((call) => followsRules(call, TOOL_CALL)) && arePlainOptions(reasoning);
}
function arePlainOptions(reasoning) {
	const options = reasoning.get("options");
	const considered = reasoning.get("options_considered");
	const selected = reasoning.get("selected_option");
	if (options.length !== considered.length) return false;
	if (!options.length) return true;
	let chosen = 0;
	let isNamed = selected === "";
	for (const [at, option] of options.entries()) {
		if (!followsRules(option, OPTION) || option.get("description") !== considered[at]) return false;
		const isSelected = option.get("selected") === true;
		if (!isPlainScore(option.get("feasibility"))) return false;
		if (!isSelected && strip(option.get("rejection_reason")) === "") return false;
		if (selected === option.get("id") || selected === option.get("description")) isNamed = true;
		else if (selected !== "" && isSelected) return false;
		if (isSelected) chosen++;
	}
	return chosen <= 1 && isNamed;
}
// src/verify/record.ts
/** Read the signed text of one record: whether it is a capsule, whether it is canonical, and its profile. */
var SCALARS = [
	"id",
	"type",
	"domain",
	"sequence",
	"previous_hash",
	"parent_id"
];
/** Read a record. Raises `Unreadable` if its text is not a capsule. */
function readRecord(sealed) {
	const content = sealed.value;
	const { isCanonical } = sealed;
	if (isPlainlyValid(content) && isPlace(content.get("sequence"))) return {
		content,
		isCanonical,
		isValid: true
	};
	const capsule = checkShape(content);
	const reasoning = capsule.get("reasoning");
	const options = reasoning.get("options");
	const scores = [reasoning.get("confidence"), ...Array.isArray(options) ? options.map((option) => isObject(option) ? option.get("feasibility") : void 0) : []];
	return {
		content: capsule,
		isCanonical: isCanonical && !scores.some(isInteger),
		isValid: false
	};
}
function checkShape(content) {
	if (!isObject(content)) throw new Unreadable("a capsule must be a JSON object");
	for (const name of [...SCALARS, ...SECTIONS]) if (!content.has(name)) throw new Unreadable(`the key '${name}' is missing`);
	for (const name of SECTIONS) if (!isObject(content.get(name))) throw new Unreadable(`${name} must be an object`);
	const isText = (name) => typeof content.get(name) === "string";
	const isTextOrNull = (name) => content.get(name) === null || isText(name);
	if (isText("id") && isText("type") && isText("domain") && isPlace(content.get("sequence")) && isTextOrNull("previous_hash") && isTextOrNull("parent_id")) return content;
	throw new Unreadable("id, type, domain, parent_id, sequence or previous_hash is not of its type");
}
var AGENT_CAPSULE_KEYS = {
	trigger: [
		"type",
		"source",
		"request"
	],
	context: [
		"agent_id",
		"session_id",
		"environment"
	],
	reasoning: [
		"analysis",
		"reasoning",
		"model"
	],
	authority: ["type"],
	execution: [
		"tool_calls",
		"duration_ms",
		"resources_used"
	],
	outcome: [
		"status",
		"summary",
		"side_effects"
	]
};
/** The specification that has these section keys, and the first thing that is not valid by CPS, or "". */
function examineProfile(content) {
	if (!content.has("spec_version")) {
		const complete = new Map(content).set("spec_version", "1.0");
		const found = isPlainlyValid(complete) ? {
			profile: "cps",
			problem: ""
		} : examineProfile(complete);
		return {
			profile: `${found.profile} without spec_version`,
			problem: found.problem
		};
	}
	const section = (name) => content.get(name);
	const hasAll = (keys) => Object.entries(keys).every(([name, list]) => list.every((key) => section(name).has(key)));
	let profile = "other";
	if (hasAll(CPS_KEYS) && Object.entries(CPS_KEYS).every(([name, list]) => section(name).size === list.length)) profile = "cps";
	else if (hasAll(AGENT_CAPSULE_KEYS) && !section("trigger").has("timestamp") && !section("reasoning").has("options")) profile = "agent-capsule";
	return {
		profile,
		problem: findCpsProblem(content, { complete: profile !== "agent-capsule" }) ?? ""
	};
}
// src/verify/chain.ts
/**
* Judge the records of a chain, one at a time. The twin of `aver.verdict.chain`.
*
* For each record, the judge reports the first of these rules that is broken, and goes on with the next record:
*
*     1. the text is one JSON object with a capsule's keys           SCHEMA_INVALID, DUPLICATE_KEY
*     2. it has the stored hash                                      HASH_MISMATCH
*     3. the stored hash was signed by the key it names              SIG_MISSING, SIG_INVALID (UNKNOWN_SIGNER: unchecked)
*     4. the seal's copies match the values inside the hash          SEAL_MISMATCH
*     5. the sequence number is the next one                         SEQUENCE_GAP
*     6. the link is the hash of the record before                   CHAIN_BREAK, GENESIS_INVALID
*     7. the first record names this chain                           CHAIN_IDENTITY
*     8. the key was made for this, and was still valid              KEY_MISMATCH, KEY_RETIRED
*
* Rule 9 of the Python judge compares the columns of a store, which no file has.
*/
function roleOf(rules, key) {
	return rules.ring.roleOf(key) ?? rules.roles.get(key.ed25519) ?? null;
}
/** The rules with nothing but keys. */
function plainRules(ring, ed25519, more = {}) {
	return {
		ring,
		ed25519,
		level: "signature",
		requirePq: false,
		retired: /* @__PURE__ */ new Map(),
		roles: /* @__PURE__ */ new Map(),
		recorded: null,
		began: /* @__PURE__ */ new Map(),
		crew: null,
		along: /* @__PURE__ */ new Map(),
		...more
	};
}
/** Records that cannot be read, or have not their hash, after which a verifier of a file reads no further. */
var UNREADABLE_MAX = 1e3;
var REST_UNREAD = `more than ${UNREADABLE_MAX} records cannot be read or have not their hash; the rest was not read`;
/** Longest text of a finding. It may quote a record, which must not flood the report. */
var WORDS_MAX = 400;
/** Shorten a text that may quote a record, and escape its unprintable characters. */
function makePrintable(words) {
	const short = words.length > WORDS_MAX ? `${cutText(words, WORDS_MAX)} …` : words;
	if (isPrintable(short)) return short;
	return [...short].map((one) => isPrintable(one) ? one : `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`).join("");
}
/** Judges the records of one chain, or of a part of it, in order. */
var ChainJudge = class {
	tally = new Tally();
	isFirst = true;
	unreadableCount = 0;
	unparsedCount = 0;
	validCount = 0;
	counts = {
		content: 0,
		signature: 0,
		links: 0,
		keys: 0
	};
	verified = null;
	constructor(rules, options = {}) {
		const { chain = null, start = 0, previous = null, identity = {}, source = null, needsBlock = false } = options;
		this.rules = rules;
		this.chain = chain;
		this.source = source;
		this.identity = identity;
		this.needsBlock = needsBlock;
		this.expected = start === null ? null : BigInt(start);
		this.beforeFirst = start === null;
		this.previous = previous;
	}
	/** The signatures that judging this record will ask about. */
	static *questions(rules, record) {
		if (rules.level !== "signature" || !record.signature) return;
		const known = rules.ring.lookup(record.signed_by);
		for (const key of known.length ? known : rules.ring.keys) yield {
			publicHex: key.ed25519,
			message: record.hash,
			signature: record.signature
		};
		const publicHex = rules.along.get(record.signed_by);
		if (!known.length && publicHex !== void 0) yield {
			publicHex,
			message: record.hash,
			signature: record.signature
		};
	}
	/** Judge the next record. Returns its content if it could be read. */
	judge(record) {
		this.tally.records++;
		let sequence = this.expected;
		let content = null;
		try {
			const reading = readRecord(record);
			content = reading.content;
			if (this.expected === null) sequence = this.expected = BigInt(content.get("sequence").text);
			if (!reading.isCanonical) this.add("canonical", "warning", "NOT_CANONICAL", "signed bytes are not in canonical form", sequence);
			const problem = this.findProblem(record, content);
			if (problem !== null) {
				if (problem[1] === "HASH_MISMATCH") this.unreadableCount++;
				this.add(problem[0], "failed", problem[1], problem[2], sequence);
			} else if (reading.isValid) this.validCount++;
			else {
				const { profile, problem: invalid } = examineProfile(content);
				this.tally.profiles.set(profile, (this.tally.profiles.get(profile) ?? 0) + 1);
				if (invalid) this.add("profile", "warning", "NOT_VALID_CPS", `not valid by CPS: ${invalid}`, sequence);
			}
		} catch (error) {
			this.unreadableCount++;
			if (error instanceof DuplicateKey) this.add("canonical", "failed", "DUPLICATE_KEY", error.message, sequence);
			else if (error instanceof Unreadable) {
				this.unparsedCount++;
				this.add("schema", "failed", "SCHEMA_INVALID", error.message, sequence);
			} else {
				this.unparsedCount++;
				this.add("schema", "failed", "SCHEMA_INVALID", `the record cannot be judged (${error.name})`, sequence);
				content = null;
			}
		}
		this.isFirst = false;
		this.previous = record.hash;
		this.expected = sequence === null ? null : sequence + 1n;
		return content;
	}
	/** The key that signed the record judged last, if its signature is valid. */
	get signer() {
		return this.verified;
	}
	/** Report that the next record is there and cannot be read. */
	unreadable(error, where = "") {
		this.tally.records++;
		this.unreadableCount++;
		const check = error.code === "DUPLICATE_KEY" ? "canonical" : "schema";
		this.unparsedCount += Number(check === "schema");
		this.add(check, "failed", error.code, where + error.message, this.expected);
		this.expected = this.expected === null ? null : this.expected + 1n;
		this.previous = null;
		this.isFirst = false;
	}
	/** Whether so many records cannot be read that the caller must stop. Then a finding says so, in their place. */
	stopsReading() {
		if (this.unreadableCount <= 1e3) return false;
		this.add("schema", "failed", "NOT_READ", REST_UNREAD, this.expected);
		return true;
	}
	/** Return the tally with the number of records on which each check was carried out. */
	finish() {
		const { tally, counts, rules } = this;
		const times = tally.records;
		if (times) {
			tally.countDone("schema", times);
			tally.countDone("canonical", times - this.unparsedCount);
			if (times === 1 && this.beforeFirst) {
				counts.links = 0;
				tally.skip("links", "a record on its own: its neighbours are not here", { matters: false });
			}
			for (const [check, count] of Object.entries(counts)) if (count) tally.countDone(check, count);
			if (this.validCount) tally.profiles.set("cps", (tally.profiles.get("cps") ?? 0) + this.validCount);
		}
		if (rules.level === "structural") tally.skip("content", "structural level: stored hashes were trusted", { matters: true });
		if (rules.level !== "signature") tally.skip("signature", `${rules.level} level: signatures were not checked`, { matters: true });
		return tally;
	}
	/** The first rule from 2 to 8 that the record breaks. */
	findProblem(record, content) {
		const { counts, rules } = this;
		if (rules.level !== "structural") {
			counts.content++;
			if (record.computedHash !== record.hash) return [
				"content",
				"HASH_MISMATCH",
				"the content does not have the stored hash"
			];
		}
		if (rules.level === "signature") {
			const problem = this.signatureProblem(record);
			if (problem !== null) return problem;
		}
		const environment = content.get("context").get("environment");
		const found = isObject(environment) ? environment.get("aver") : void 0;
		const block = isObject(found) ? found : null;
		if (block === null) {
			if (this.needsBlock) return [
				"identity",
				"CHAIN_IDENTITY",
				"not sealed by a ledger: it lacks the block that appending adds"
			];
		} else if (this.needsBlock && !(block.has("at") && block.has("by") && block.has("kind"))) return [
			"identity",
			"CHAIN_IDENTITY",
			"not sealed by a ledger: its block lacks what appending adds"
		];
		else if (block.has("at") && block.get("at") !== record.signed_at) return [
			"signature",
			"SEAL_MISMATCH",
			`signed_at says ${record.signed_at}, the record another time`
		];
		else if (block.has("by") && block.get("by") !== record.signed_by) return [
			"signature",
			"SEAL_MISMATCH",
			`signed_by says ${record.signed_by}, the record another signer`
		];
		counts.links++;
		let problem = this.placeProblem(content);
		if (problem === null && this.isFirst) problem = this.identityProblem(content, block);
		if (problem === null && this.verified !== null) {
			counts.keys++;
			problem = this.keyProblem(record, this.verified, content, block);
		}
		return problem;
	}
	/** Rule 3. Stores the key that verified: `signed_by` is only a hint which key to try. */
	signatureProblem(record) {
		const { ring, ed25519, requirePq } = this.rules;
		this.verified = null;
		this.counts.signature++;
		if (!record.signature) return [
			"signature",
			"SIG_MISSING",
			"the record is not signed"
		];
		const known = ring.lookup(record.signed_by);
		for (const key of known.length ? known : ring.keys) {
			if (!ed25519.verify(key.ed25519, record.hash, record.signature)) continue;
			this.verified = key;
			if (!known.length) {
				const note = `signer '${record.signed_by}' is the known key ${key.fingerprint}`;
				this.tally.notes.set("signature", makePrintable(note));
			}
			const isPqSigner = key.mlDsa !== "" || roleOf(this.rules, key)?.algorithm === "ed25519+ml-dsa-65";
			return record.signature_pq || isPqSigner || requirePq ? this.pqProblem(record, key, isPqSigner) : null;
		}
		if (known.length) return [
			"signature",
			"SIG_INVALID",
			`the signature is not ${record.signed_by}'s over this hash`
		];
		if (!isSignatureHex(record.signature)) return [
			"signature",
			"SIG_INVALID",
			"the signature is not one that any key can have made"
		];
		this.counts.signature--;
		const words = `the key of signer ${record.signed_by || "unnamed"} is not known here`;
		this.add("signature", "not_checked", "UNKNOWN_SIGNER", words, this.expected);
		return this.pqProblem(record, null, false);
	}
	/** The second half of rule 3: the ML-DSA-65 signature, by the key whose Ed25519 signature is valid. */
	pqProblem(record, signer, isPqSigner) {
		const name = record.signed_by || "the signer";
		const { requirePq } = this.rules;
		if (!record.signature_pq) {
			const words = "there is no post-quantum signature";
			if (requirePq) return [
				"signature_pq",
				"SIG_MISSING",
				`${words}, and one is required`
			];
			if (signer !== null && isPqSigner) {
				const more = `${words}, though ${name} signs with ML-DSA-65 too: it may have been stripped`;
				this.add("signature_pq", "warning", "SIG_MISSING", more, this.expected);
			}
		} else if (signer !== null && signer.mlDsa) {
			if (!verifyMlDsa(signer.mlDsa, encoder.encode(record.hash), record.signature_pq)) return [
				"signature_pq",
				"SIG_INVALID",
				`the ML-DSA-65 signature is not ${name}'s over this hash`
			];
			this.tally.countDone("signature_pq");
		} else if (requirePq) return [
			"signature_pq",
			"SIG_INVALID",
			`no ML-DSA-65 key of ${name} is known`
		];
		else if (!isMlDsaSignatureHex(record.signature_pq)) return [
			"signature_pq",
			"SIG_INVALID",
			"the ML-DSA-65 signature is not one that any key can have made"
		];
		else this.add("signature_pq", "not_checked", "UNKNOWN_SIGNER", `no ML-DSA-65 key of ${name} is known here`, this.expected);
		return null;
	}
	placeProblem(content) {
		const sequence = BigInt(content.get("sequence").text);
		const link = content.get("previous_hash");
		if (sequence !== this.expected) return [
			"links",
			"SEQUENCE_GAP",
			`expected sequence ${this.expected}, the record says ${sequence}`
		];
		if (sequence === 0n) {
			this.tally.countDone("genesis");
			if (link !== null) return [
				"genesis",
				"GENESIS_INVALID",
				"the first record points at a predecessor"
			];
		} else if (link === null) return [
			"genesis",
			"GENESIS_INVALID",
			`record ${sequence} claims to be the first`
		];
		else if (this.previous === null) this.tally.skip("links", `the record before sequence ${sequence} is not here`, { matters: false });
		else if (link !== this.previous) return [
			"links",
			"CHAIN_BREAK",
			"previous_hash is not the hash of the record before"
		];
		return null;
	}
	identityProblem(content, block) {
		const names = Object.entries(this.identity);
		if (BigInt(content.get("sequence").text) !== 0n || !names.length) return null;
		const named = block?.get("chain");
		if (!isObject(named)) {
			if (this.needsBlock) return [
				"identity",
				"CHAIN_IDENTITY",
				"the first record does not say which chain it begins"
			];
			this.tally.skip("identity", "made by other software, which does not name its chain", { matters: false });
			return null;
		}
		this.tally.countDone("identity");
		for (const [key, value] of names) if (named.get(key) !== value) return [
			"identity",
			"CHAIN_IDENTITY",
			`stored as ${key} '${value}', but says it is another`
		];
		return null;
	}
	keyProblem(record, verified, content, block) {
		const { rules } = this;
		const key = verified.ed25519;
		const signer = verified.fingerprint;
		const name = this.identity["name"] ?? this.chain;
		const sequence = BigInt(content.get("sequence").text);
		const began = rules.began.get(key);
		let isRecorded = rules.recorded === null || rules.recorded.has(key);
		if (began !== void 0 && name !== null && sequence < BigInt(began.get(name) ?? 0)) isRecorded = false;
		if (!isRecorded) {
			const unrecorded = unrecordedKey(key, name?.startsWith("protocol.") ? this.chain : null);
			if (!this.tally.unrecorded.has(unrecorded)) this.tally.unrecorded.set(unrecorded, place(this.chain, this.expected, this.source));
		}
		const role = roleOf(rules, verified);
		if (role !== null && (!role.maySeal || name === null || RESERVED_CHAINS.has(name))) {
			const problem = findMisuse(role, verified, content, name ?? content.get("domain"));
			if (problem !== null) return [
				"keys",
				"KEY_MISMATCH",
				`${signer} is a key of ${role}: ${problem}`
			];
		}
		const retirement = rules.retired.get(key);
		if (retirement === void 0) return null;
		if (retirement.limits !== null && name !== null) {
			const limit = retirement.limits.get(name) ?? 0;
			return sequence >= BigInt(limit) ? [
				"keys",
				"KEY_RETIRED",
				`${signer} was retired when this chain had ${limit} records`
			] : null;
		}
		const at = block?.has("at") ? block.get("at") : record.signed_at;
		if (retirement.retiredAt && !(typeof at === "string" && at <= retirement.retiredAt)) return [
			"keys",
			"KEY_RETIRED",
			`${signer} was retired at ${retirement.retiredAt}`
		];
		const words = `how far the retired key ${signer} was good is not recorded here; only times were compared`;
		this.tally.skip("keys", words, { matters: true });
		return null;
	}
	add(check, status, code, words, sequence) {
		this.tally.add({
			check,
			status,
			code,
			words: makePrintable(words),
			place: place(this.chain, sequence, this.source)
		});
	}
};
/** Records of a batch under which it is not worth giving them to others. */
var SHARED_MIN = 8;
/** Ask about the signatures of records that are judged next, and hash the records meanwhile. */
async function prepareRecords(rules, records) {
	const questions = records.flatMap((record) => [...ChainJudge.questions(rules, record)]);
	if (rules.crew?.isBusy === false && records.length >= SHARED_MIN && rules.ed25519.usesPlatform) {
		const { hashes, answers } = await rules.crew.work(records.map((record) => record.canonical), questions);
		records.forEach((record, at) => record.adoptHash(hashes[at]));
		rules.ed25519.adopt(questions, answers);
		return;
	}
	const asked = rules.ed25519.prefetch(questions);
	for (const record of records) record.computedHash;
	await asked;
}
/** Batches for each of a crew that are prepared ahead: those that it has, and one that the judge prepares meanwhile. */
var AHEAD_EACH = 5;
/**
* Batches in their order, each prepared before it is given. With a crew, the next ones are prepared meanwhile: a few for
* each of the crew, so that memory stays bounded.
*/
async function* prepareBatches(rules, batches, pick) {
	const ahead = AHEAD_EACH * (rules.crew?.size ?? 0);
	const waiting = [];
	for await (const items of batches) {
		await rules.crew?.rested();
		const ready = prepareRecords(rules, pick(items));
		ready.catch(() => {});
		waiting.push({
			items,
			ready
		});
		while (waiting.length > ahead) {
			const next = waiting.shift();
			await next.ready;
			yield next.items;
		}
	}
	for (const { items, ready } of waiting) {
		await ready;
		yield items;
	}
}
/** The reason why a key with this role must not have sealed a record of this chain; null if it may. */
function findMisuse(role, key, content, chain) {
	if (!RESERVED_CHAINS.has(chain)) return role.maySeal ? null : "it must not seal records";
	if (role.mayAttest) return null;
	if (chain === "keys" && role.maySeal && describesKey(content, role, key)) return null;
	return `only the ledger's key seals the chain ${chain}`;
}
/** Whether a record is about the use of this very key, or about an earlier key of the same identity. */
function describesKey(content, role, key) {
	const result = content.get("outcome").get("result");
	const kind = readKind(content);
	if (![
		"key.create",
		"key.rotate",
		"key.retire"
	].includes(kind) || !isObject(result)) return false;
	return (result.get("public_key") === key.ed25519 || kind !== "key.create") && equalJson(result.get("identity"), role.identity) && equalJson(result.get("purpose"), role.purpose);
}
// src/verify/examiner.ts
/**
* Examiners: checks of one kind of record, beyond the seals. The twin of `aver.verdict.examiner`.
*
* The page makes the checks of approvals and of runs. Decisions of the gate and acts of the gateway are judged by
* `aver verify` alone, which has the rules, the readers of commands and the policy language. Where a thing holds such
* records, these checks are not made here, and the verdict is at most qualified.
*/
/** By domain, the checks that a verdict owes to chains of it. */
var EXAMINED_DOMAINS = /* @__PURE__ */ new Map([
	["gate", ["decisions"]],
	["approvals", ["approvals"]],
	["approvers", ["approvals"]],
	["actions", RUN_CHECKS],
	["gateway", ACT_CHECKS],
	["delegations", ["delegation"]],
	["protocol", ["protocol"]]
]);
/** The checks that only `aver verify` makes, by domain. */
var PYTHON_ALONE = /* @__PURE__ */ new Map([
	["gate", ["decisions", "changes"]],
	["gateway", ACT_CHECKS],
	["delegations", ["delegation"]],
	["protocol", ["protocol"]]
]);
var PYTHON_WORDS = "a page cannot make this check; run: aver verify";
function selectChains(examination, ...domains) {
	return examination.chains.filter((chain) => domains.includes(domainOf(chain.origin)));
}
/** Add the examiners' findings to `tally`; a check that cannot be made is added as not checked. */
async function examine$1(examiners, examination, tally) {
	for (const domain of new Set(examination.chains.map((chain) => domainOf(chain.origin)))) skipPythonChecks(domain, tally);
	for (const examiner of examiners) {
		const chains = selectChains(examination, ...examiner.domains);
		if (!chains.length) continue;
		const { reader } = examination;
		reader.leftOut = null;
		try {
			await guard(tally, examiner.checks[0], place(chains[0].name), async () => {
				tally.merge(await examiner.examine(examination));
			});
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			for (const check of examiner.checks) tally.skip(check, `the records cannot be read: ${error.message}`, { matters: true });
		}
		if (reader.leftOut !== null) for (const check of examiner.checks) tally.skip(check, "records that do not hold were left out", { matters: true });
	}
}
/** Report the checks that only `aver verify` makes on chains of this domain. */
function skipPythonChecks(domain, tally) {
	for (const check of PYTHON_ALONE.get(domain) ?? []) tally.skip(check, PYTHON_WORDS, { matters: true });
}
/** Report the checks that chains of this domain would need as not checked. */
function skipExaminers(domain, reason, tally) {
	for (const check of EXAMINED_DOMAINS.get(domain) ?? []) tally.skip(check, reason, { matters: true });
}
/** Turn any exception in the judging of a record into a finding at its place; `NotFound` goes on to the caller. */
async function guard(tally, check, where, work) {
	try {
		await work();
	} catch (error) {
		if (error instanceof NotFound) throw error;
		const words = error instanceof BadInput ? error.message : `it lacks keys of a record of its kind (${error.name})`;
		tally.fail(check, "SCHEMA_INVALID", words, where);
	}
}
/** A reader that takes origins, and gives only records whose content and signature hold. */
var ValidRecords = class {
	/** The first record that was asked for and does not hold. */
	leftOut = null;
	/** `names` has the stored name of each origin. The records of the chains in `doubtful` are judged once more. */
	constructor(reader, rules, names, doubtful) {
		this.reader = reader;
		this.rules = {
			...rules,
			retired: /* @__PURE__ */ new Map()
		};
		this.names = names;
		this.doubtful = doubtful;
	}
	async *read(chain) {
		const name = this.names.get(chain);
		if (name === void 0) throw new NotFound(`the chain ${chain} is not here`);
		for await (const record of this.reader.read(name)) if (!this.doubtful.has(name) || this.holds(record, name)) yield record;
	}
	async get(hash) {
		const record = await this.reader.get(hash);
		return record !== null && this.holds(record, record.chain) ? record : null;
	}
	blob(digest) {
		return this.reader.blob(digest);
	}
	/** Whether a chain with records is here. */
	has(chain) {
		const name = this.names.get(chain);
		return name !== void 0 && (this.reader.head(name)?.count ?? 0) > 0;
	}
	holds(record, chain) {
		const judge = new ChainJudge(this.rules, {
			chain,
			start: null
		});
		judge.judge(record);
		const failed = judge.tally.findings.find((finding) => finding.status === "failed");
		if (failed !== void 0) this.leftOut ??= failed.place;
		return failed === void 0;
	}
};
/** The name, ledger and tenant that a chain's first record gives it; null where it gives none. */
function readChainIdentity(record) {
	let named;
	try {
		named = record === null ? void 0 : readBlock(record.content)?.get("chain");
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
	}
	return isObject(named) && named.size ? named : null;
}
// src/verify/heads.ts
/** A head: which chain, how many records, and the hash of the last one; and chains compared with remembered heads. */
/** Read a head from JSON of unknown origin. Raises `BadInput` unless it has exactly this form. */
function readHead(data) {
	const keys = [
		"ledger",
		"tenant",
		"chain",
		"count",
		"hash"
	];
	if (!isObject(data) || data.size !== keys.length || !keys.every((key) => data.has(key))) throw new BadInput("a head has exactly the keys ledger, tenant, chain, count and hash");
	const [ledger, tenant, chain, count, hash] = keys.map((key) => data.get(key));
	for (const name of [
		ledger,
		tenant,
		chain
	]) if (typeof name !== "string" || !name.isWellFormed()) throw new BadInput("a head's ledger, tenant and chain are strings");
	if (!isPlace(count)) throw new BadInput("a head's count is a number of records");
	if (Number(count.text) === 0 !== (hash === null) || hash !== null && !(typeof hash === "string" && HEX64.test(hash))) throw new BadInput("a head's hash is 64 lower-case hex digits, or null when there are no records");
	return {
		ledger,
		tenant,
		chain,
		count: toCount(BigInt(count.text)),
		hash
	};
}
function equalHeads(one, other) {
	return one.ledger === other.ledger && one.tenant === other.tenant && one.chain === other.chain && one.count === other.count && one.hash === other.hash;
}
/**
* Compare one chain with a remembered head. `actualHash` is the chain's hash at the head's place.
*
* Adds a finding where they differ. Returns whether the chain has grown since.
*/
function checkHead(head, actual, actualHash, tally, check, remembered) {
	tally.countDone(check);
	if (head.count === 0) return false;
	if (actual === null) {
		const words = `${remembered} has this chain with ${head.count} records; it is not here`;
		tally.fail(check, "CHAIN_MISSING", words, place(head.chain), { ...head });
		return false;
	}
	const proof = {
		remembered: { ...head },
		actual: { ...actual }
	};
	if (actual.count < head.count) {
		const words = `${remembered} has ${head.count} records of this chain; ${actual.count} are here`;
		tally.fail(check, "TRUNCATED", words, place(head.chain, actual.count), proof);
	} else if (actualHash !== head.hash) {
		const words = `${remembered} has another record at this place`;
		tally.fail(check, "ROLLBACK", words, place(head.chain, BigInt(head.count) - 1n), proof);
	}
	return actual.count > head.count && actualHash === head.hash;
}
// src/verify/blobs.ts
/** References to large values that are stored beside a record. The twin of `aver.capsule.blobs`. */
/** How the canonical text of a record with a reference contains it. */
var BLOB_REFERENCE = "\"blob\":{";
/** Digest and size of every blob that a value refers to. */
function* blobReferences(value) {
	const stack = [value];
	while (stack.length) {
		const item = stack.pop();
		if (isObject(item)) {
			const reference = item.get("blob");
			if (isObject(reference) && item.size === 1 && reference.get("alg") === "sha256") {
				const digest = reference.get("digest");
				const size = reference.get("size");
				if (typeof digest === "string" && HEX64.test(digest) && isInteger(size)) {
					yield {
						digest,
						size: size.text === "-0" ? "0" : size.text
					};
					continue;
				}
			}
			for (const member of item.values()) stack.push(member);
		} else if (Array.isArray(item)) for (const member of item) stack.push(member);
	}
}
// src/verify/run/action.ts
/** One action of an agent and its byte forms. The twin of `aver.actions.action` and `aver.actions.encodings`. */
var ACTION_TYPES = [...[
	"tool_call",
	"code_gen",
	"code_edit",
	"api_request",
	"decision",
	"observation",
	"file_read",
	"file_write"
], ...[
	"file_delete",
	"shell_exec",
	"command",
	"browser_action",
	"web_request",
	"action",
	"unknown"
]];
var DECISIONS = [
	"pass",
	"skip",
	"human_review",
	"human_approved",
	"skipped"
];
var POLICY_VERDICTS = [
	"PROOF_ONLY",
	"POLICY_ENFORCED",
	"FULLY_VERIFIED"
];
var FIELDS$1 = [
	...[
		"action_id",
		"action_type",
		"instruction_hash",
		"input_hash",
		"output_hash",
		"parent_action_id"
	],
	...[
		"parent_receipt_hash",
		"gate_score",
		"gate_decision",
		"policy_verdict",
		"success",
		"duration_ms"
	],
	...["timestamp", "metadata"]
];
var OPTIONAL = /* @__PURE__ */ new Set([...[
	"parent_action_id",
	"parent_receipt_hash",
	"gate_score",
	"gate_decision",
	"policy_verdict",
	"metadata"
]]);
var ID_MAX = 256;
var DURATION_MAX = 2 ** 53;
/** Largest canonical size, in bytes, of metadata inside a capsule; larger metadata becomes a blob. */
var METADATA_INLINE = 8192;
var METADATA_MAX = 4194304;
var TIME = /^(\d{4}-\d\d-\d\d)(?:(T\d\d:\d\d)(?:(:\d\d)(?:[.,]\d+)?)?(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$/;
/** The fourteen fields of an action as an object. */
function actionFields(action) {
	return new Map(FIELDS$1.map((name) => [name, action[name]]));
}
/** Read an action. Optional fields may be absent. Raises `BadInput`. */
function readAction(data) {
	if (!isObject(data)) throw new BadInput("an action must be an object");
	for (const name of data.keys()) if (!FIELDS$1.includes(name)) throw new BadInput(`${show(name)} is not a field of an action`);
	const get = (name) => {
		const value = data.get(name);
		if (value !== void 0) return value;
		if (OPTIONAL.has(name)) return null;
		throw new BadInput(`the action lacks '${name}'`);
	};
	const check = (name, isGood) => {
		const value = get(name);
		if (!isGood(value)) throw new BadInput(`${name} has a bad value`);
		return value;
	};
	const isId = (value) => typeof value === "string" && value !== "" && codePoints(value) <= ID_MAX && isPrintable(value);
	const isHash = (value) => typeof value === "string" && HEX64.test(value);
	const orNull = (isGood) => (value) => value === null || isGood(value);
	const oneOf = (words) => (value) => typeof value === "string" && words.includes(value);
	FIELDS$1.forEach(get);
	return {
		action_id: check("action_id", isId),
		parent_action_id: check("parent_action_id", orNull(isId)),
		action_type: check("action_type", oneOf(ACTION_TYPES)),
		gate_decision: check("gate_decision", orNull(oneOf(DECISIONS))),
		policy_verdict: check("policy_verdict", orNull(oneOf(POLICY_VERDICTS))),
		instruction_hash: check("instruction_hash", isHash),
		input_hash: check("input_hash", isHash),
		output_hash: check("output_hash", isHash),
		parent_receipt_hash: check("parent_receipt_hash", orNull(isHash)),
		gate_score: check("gate_score", orNull((value) => value instanceof JsonNumber && value.value >= 0 && value.value <= 1)),
		success: check("success", (value) => typeof value === "boolean"),
		duration_ms: check("duration_ms", (value) => isInteger(value) && value.value >= 0 && BigInt(value.text) <= BigInt(DURATION_MAX)),
		timestamp: check("timestamp", (value) => typeof value === "string" && isTime(value)),
		metadata: check("metadata", orNull(isObject))
	};
}
/** Whether a text is a time of ISO 8601. Other programs write times with an offset, or without any. */
function isTime(text) {
	const [whole, date, time = "T00:00", seconds = ":00"] = TIME.exec(text) ?? [];
	return whole !== void 0 && isCalendarTime(`${date}${time}${seconds}`);
}
/** Whether a time of an action says in which zone it is. */
var hasZone = (time) => TIME.exec(time)?.[4] !== void 0;
var RECEIPT_KEYS = [...[
	"action_id",
	"action_type",
	"instruction_hash",
	"input_hash",
	"output_hash",
	"parent_action_id"
], ...[
	"parent_receipt_hash",
	"gate_score",
	"gate_decision",
	"success",
	"duration_ms",
	"timestamp"
]];
var RECEIPT_KEY_COUNT = RECEIPT_KEYS.length;
var CAPSEAL_KEYS = [...RECEIPT_KEYS, "policy_verdict"];
/** Encode an action. Raises `BadInput` if its metadata has no canonical form or is too large. */
function encodeAction(action) {
	const receipt = receiptText(action);
	if (metadataBlobDigest(action.metadata) !== null) throw new BadInput("metadata must not be a reference to a blob");
	const metadata = action.metadata === null ? "null" : canonicalJson(action.metadata);
	if (encoder.encode(metadata).length > METADATA_MAX) throw new BadInput(`metadata has more than ${METADATA_MAX} bytes`);
	return {
		receipt,
		receiptHash: sha256Hex(receipt),
		metadata
	};
}
/** The exact text over which the receipt is computed. */
function receiptText(action) {
	const fields = actionFields(action);
	return asciiJson(new Map(RECEIPT_KEYS.map((name) => [name, fields.get(name)])));
}
function receiptHash(action) {
	return sha256Hex(receiptText(action));
}
/** The digest of the blob, if `metadata` is only a reference to one that is too large for a capsule; else null. */
function metadataBlobDigest(metadata) {
	if (!isObject(metadata) || metadata.size !== 1 || !metadata.has("blob")) return null;
	for (const { digest, size } of blobReferences(metadata)) if (BigInt(size) > BigInt(METADATA_INLINE)) return digest;
	return null;
}
/** The sealed form of an action, as its capsule contains it. */
function sealForm(action, texts) {
	const fields = actionFields(action);
	const data = encoder.encode(texts.metadata);
	let metadata = action.metadata;
	if (data.length > METADATA_INLINE) {
		const reference = [
			["alg", "sha256"],
			["digest", sha256Hex(data)],
			["size", new JsonNumber(String(data.length))],
			["media", "application/json"]
		];
		metadata = /* @__PURE__ */ new Map([["blob", new Map(reference)]]);
	}
	return canonicalJson(fields.set("metadata", metadata));
}
var ACTION_LINE_MAX = ELEMENT_MAX;
/** Read a line without its line feed. Raises `Unreadable` if it is not an action with a receipt. */
function readActionLine(raw) {
	const content = readJson(raw);
	if (!isObject(content)) throw new Unreadable("a line of actions must be a JSON object");
	const stored = content.get("receipt_hash");
	const fields = content.get("canonical_fields") ?? null;
	content.delete("receipt_hash");
	content.delete("canonical_fields");
	let action;
	let texts;
	try {
		action = readAction(content);
		texts = encodeAction(action);
	} catch (error) {
		throw error instanceof BadInput ? new Unreadable(error.message) : error;
	}
	if (typeof stored !== "string" || !HEX64.test(stored)) throw new Unreadable("the action has no receipt_hash of 64 lower-case hex digits");
	const own = actionFields(action);
	const line = {
		action,
		texts,
		receiptHash: stored
	};
	if (fields === null) {
		for (const keys of [RECEIPT_KEYS, CAPSEAL_KEYS]) if (isReceipt(stored, new Map(keys.map((name) => [name, own.get(name)])), null)) return {
			...line,
			keys: keys.length,
			problem: null
		};
		return {
			...line,
			keys: RECEIPT_KEYS.length,
			problem: "receipt_hash is not the hash of the action's fields"
		};
	}
	const hasKeys = (keys) => isObject(fields) && fields.size === keys.length && keys.every((name) => fields.has(name));
	if (!isObject(fields) || !(hasKeys(RECEIPT_KEYS) || hasKeys(CAPSEAL_KEYS))) throw new Unreadable("canonical_fields are neither the 12 keys of a receipt nor those with policy_verdict");
	if ([...fields.values()].some((value) => isObject(value) || Array.isArray(value))) throw new Unreadable("canonical_fields hold something that is no field of an action");
	return {
		...line,
		keys: fields.size,
		problem: receiptProblem(own, stored, fields)
	};
}
function receiptProblem(own, stored, fields) {
	if (!isReceipt(stored, fields, fields.get("gate_score"))) return "receipt_hash is not the hash of canonical_fields";
	for (const [name, value] of fields) {
		const beside = own.get(name);
		if (!equalJson(value, beside) || typeof value === "boolean" !== (typeof beside === "boolean")) return `canonical_fields say another ${name} than the action`;
	}
	return null;
}
/** Whether a receipt is the hash of these fields; the score may be written in the way of another language. */
function isReceipt(stored, fields, asWritten) {
	const value = fields.get("gate_score");
	const scores = /* @__PURE__ */ new Set([asciiJson(value)]);
	if (asWritten instanceof JsonNumber) scores.add(asWritten.text);
	if (isInteger(value) && (value.value === 0 || value.value === 1)) scores.add(pythonRepr(value.value + 0));
	for (const score of scores) if (sha256Hex(`{${[...fields.keys()].sort().map((key) => {
		return `${asciiString(key)}:${key === "gate_score" ? score : asciiJson(fields.get(key))}`;
	}).join(",")}}`) === stored) return true;
	return false;
}
/** Yield the lines of a file without their line feeds, skipping empty ones; for a line that is too long, the reason. */
function* readRawLines(data, limit) {
	for (let at = 0; at < data.length;) {
		const { line, next } = readEachLine(data, at, limit);
		at = next;
		if (!(line instanceof BadInput) && line.length === 0) while (at < data.length && [
			32,
			9,
			10,
			13
		].includes(data[at])) at++;
		else yield line;
	}
}
/** The same for a file that Aver wrote. An empty line is an error, and ends them. */
function* readOwnLines(data, limit) {
	for (let at = 0; at < data.length;) {
		const { line, next } = readEachLine(data, at, limit);
		at = next;
		if (!(line instanceof BadInput) && line.length === 0) {
			yield new Unreadable("the line is empty, and Aver writes no empty lines; the rest was not read");
			return;
		}
		yield line;
	}
}
function readEachLine(data, at, limit) {
	const feed = data.indexOf(10, at);
	const next = feed < 0 ? data.length : feed + 1;
	if (next - at > limit + 1) return {
		line: new Unreadable(`the line is longer than ${limit} bytes`),
		next
	};
	let end = next;
	while (end > at && (data[end - 1] === 10 || data[end - 1] === 13)) end--;
	return {
		line: data.subarray(at, end),
		next
	};
}
// src/verify/merkle.ts
/** The Merkle tree of RFC 6962. The twin of `aver.capsule.merkle`. */
var EMPTY_ROOT = sha256Bytes(/* @__PURE__ */ new Uint8Array());
function hashWith(prefix, ...parts) {
	const data = new Uint8Array(1 + parts.reduce((size, part) => size + part.length, 0));
	data[0] = prefix;
	let at = 1;
	for (const part of parts) {
		data.set(part, at);
		at += part.length;
	}
	return sha256Bytes(data);
}
/** The hash of a leaf. */
function leafHash(data) {
	return hashWith(0, data);
}
/** A growing tree. It keeps only the roots of its complete subtrees. */
var MerkleTree = class {
	size = 0;
	peaks = [];
	/** Add a leaf by its hash. */
	add(leaf) {
		let node = leaf;
		for (let size = this.size; size % 2 === 1; size = Math.floor(size / 2)) node = hashWith(1, this.peaks.pop(), node);
		this.peaks.push(node);
		this.size++;
	}
	get root() {
		let node = null;
		for (const peak of [...this.peaks].reverse()) node = node === null ? peak : hashWith(1, peak, node);
		return node ?? EMPTY_ROOT;
	}
};
/** Compute the root from a leaf, its index and its path (RFC 9162, 2.1.3.2); null if the path has a wrong length. */
function rootFromPath(leaf, index, size, path) {
	if (!(index >= 0 && index < size)) return null;
	let node = leaf;
	let last = size - 1;
	for (const sibling of path) {
		if (last === 0) return null;
		if (index % 2 === 1 || index === last) {
			node = hashWith(1, sibling, node);
			while (index % 2 === 0) {
				index = Math.floor(index / 2);
				last = Math.floor(last / 2);
			}
		} else node = hashWith(1, node, sibling);
		index = Math.floor(index / 2);
		last = Math.floor(last / 2);
	}
	return last === 0 ? node : null;
}
// src/verify/run/trace.ts
/** A run as a trace, statements about it, and their proofs. The twin of `aver.actions.proofs`. */
var AIR_ID = "aver_agent_air_v1";
var CONSTRAINTS = {
	row: [
		"booleans",
		"passed_only_if_gated",
		"enforced_only_if_passed",
		"parent_only_if_linked"
	],
	transition: [
		"next_index",
		"next_parent_is_receipt",
		"next_has_parent"
	],
	boundary: [
		"first_index_is_zero",
		"first_has_no_parent",
		"last_receipt_is_final",
		"last_index_is_count"
	]
};
var PATH_MAX = 64;
var NO_PARENT = "0".repeat(64);
function buildRow$1(index, action, texts) {
	const parent = action.parent_receipt_hash;
	const isPassed = action.gate_decision === "pass" || action.gate_decision === "human_approved";
	const rest = sha256Hex(`{"metadata":${texts.metadata},"policy_verdict":${canonicalJson(action.policy_verdict)}}`);
	const data = /* @__PURE__ */ new Uint8Array(440);
	const view = new DataView(data.buffer);
	let column = 0;
	const put = (value) => view.setBigUint64(8 * column++, BigInt(value));
	put(index);
	put(1 + ACTION_TYPES.indexOf(action.action_type));
	for (const hash of [
		action.instruction_hash,
		action.input_hash,
		action.output_hash,
		parent ?? NO_PARENT,
		texts.receiptHash,
		rest
	]) {
		const bytes = new DataView(fromHex(hash).buffer);
		for (let limb = 0; limb < 8; limb++) put(bytes.getUint32(4 * limb));
	}
	put(Number(parent !== null));
	put(Number(action.success));
	put(Number(action.gate_decision !== null));
	put(Number(isPassed));
	put(Number(isPassed && action.policy_verdict === "POLICY_ENFORCED"));
	return {
		index,
		hasParent: parent !== null,
		parent: parent ?? NO_PARENT,
		receipt: texts.receiptHash,
		leaf: leafHash(data)
	};
}
/** Takes the actions of a run in order; computes the root of their rows and finds the first broken equation. */
var Trace = class {
	count = 0;
	problem = null;
	tree = new MerkleTree();
	last = null;
	take(action, texts) {
		const row = buildRow$1(this.count, action, texts);
		const broken = this.problem === null ? brokenConstraint(this.last, row) : null;
		if (broken !== null) this.problem = `${broken}, row ${this.count}`;
		this.last = row;
		this.tree.add(row.leaf);
		this.count++;
	}
	get root() {
		return toHex(this.tree.root);
	}
	/** The first equation that does not hold, including those at the end; null if all hold. */
	problemAtEnd(count, finalReceipt) {
		if (this.problem !== null) return this.problem;
		if (this.last === null || this.last.index !== count - 1) return `last_index_is_count, ${this.count} rows`;
		return this.last.receipt === finalReceipt ? null : `last_receipt_is_final, row ${this.count - 1}`;
	}
};
/** The equation that a row breaks, alone or together with the row before. Its flags are flags by construction. */
function brokenConstraint(before, row) {
	if (before === null) return row.hasParent ? "first_has_no_parent" : null;
	if (row.parent !== before.receipt) return "next_parent_is_receipt";
	return row.hasParent ? null : "next_has_parent";
}
var FIXED = [
	["air_id", AIR_ID],
	["field", "goldilocks"],
	["row_width", new JsonNumber(String(55))],
	["receipt_keys", new JsonNumber(String(RECEIPT_KEY_COUNT))]
];
function statementFields(statement) {
	return new Map([
		...FIXED,
		["run_id", statement.runId],
		["num_actions", new JsonNumber(String(statement.numActions))],
		["final_receipt_hash", statement.finalReceiptHash],
		["row_root", statement.rowRoot]
	]);
}
/** Read a statement. Raises `BadInput` if it is of another type or version. */
function readRunStatement(data) {
	const names = [
		"run_id",
		"num_actions",
		"final_receipt_hash",
		"row_root"
	];
	const all = [...FIXED.map(([name]) => name), ...names];
	if (!isObject(data) || data.size !== all.length || !all.every((name) => data.has(name))) throw new BadInput("a statement about a run has other keys");
	for (const [name, value] of FIXED) {
		const here = data.get(name);
		if (!(value instanceof JsonNumber ? isInteger(here) && here.text === value.text : here === value)) throw new BadInput(`the statement's ${name} is another`);
	}
	const [runId, count, final, root] = names.map((name) => data.get(name));
	if (typeof runId !== "string" || !isInteger(count) || count.value < 1) throw new BadInput("a statement names a run and how many actions it has");
	if (typeof final !== "string" || typeof root !== "string" || !HEX64.test(final) || !HEX64.test(root)) throw new BadInput("a statement's receipt and root are 64 lower-case hex digits");
	return {
		runId,
		numActions: count.value,
		finalReceiptHash: final,
		rowRoot: root
	};
}
/** Why a trace of all actions does not prove the statement; null if it does. */
function traceProblem(statement, trace) {
	if (trace.count !== statement.numActions) return `the statement is about ${statement.numActions} actions; there are ${trace.count}`;
	const broken = trace.problemAtEnd(statement.numActions, statement.finalReceiptHash);
	if (broken !== null) return `a constraint does not hold: ${broken}`;
	return trace.root === statement.rowRoot ? null : "the rows have another root than the statement says";
}
/** Why an action with a Merkle path is not proved to be in the run; null if it is. */
function inclusionProblem(statement, index, action, path) {
	if (path.length > PATH_MAX || !path.every((step) => typeof step === "string" && HEX64.test(step))) return "the path is not one";
	if (!(index >= 0 && index < statement.numActions)) return `the run has no place ${index}`;
	const texts = encodeAction(action);
	const { leaf } = buildRow$1(index, action, texts);
	const root = rootFromPath(leaf, index, statement.numActions, path.map((step) => fromHex(step)));
	if (root === null || toHex(root) !== statement.rowRoot) return `the action does not lead to the run's root from place ${index}`;
	return index === statement.numActions - 1 && texts.receiptHash !== statement.finalReceiptHash ? "the last action has another receipt than the statement says" : null;
}
var ONE = new JsonNumber("1");
/** The name of the chain in which a run is sealed. */
function runChain(runId) {
	return chainName("actions", runId);
}
function hasExactly$1(data, keys) {
	return data.size === keys.length && keys.every((key) => data.has(key));
}
function readResult(content) {
	const result = at(content, "outcome", "result");
	if (!isObject(result) || !equalJson(result.get("v"), ONE)) throw new BadInput("the capsule's result is not one of this version");
	return result;
}
/** Read the result of an `action` capsule. This does not check the fields of the action. */
function readSealedAction(content) {
	const result = readResult(content);
	if (!hasExactly$1(result, [
		"v",
		"action",
		"receipt_hash",
		"gate"
	])) throw new BadInput("the capsule of an action has other keys in its result");
	const [fields, receiptHash, gate] = [
		"action",
		"receipt_hash",
		"gate"
	].map((name) => result.get(name));
	if (typeof receiptHash !== "string") throw new BadInput("the capsule of an action names no receipt");
	if (gate === null) return {
		fields,
		receiptHash,
		gate: null
	};
	const names = [
		"gate_id",
		"record",
		"digest",
		"decision",
		"diff_sha256"
	];
	const hasClientAnswer = isObject(gate) && gate.has("client_answer");
	const canAnswer = !hasClientAnswer || gate.get("client_answer") === "yes" && gate.get("decision") === "human_review";
	if (!isObject(gate) || !canAnswer || !hasExactly$1(gate, hasClientAnswer ? [...names, "client_answer"] : names)) throw new BadInput("the gate entry of an action has other keys");
	for (const name of names) {
		const value = gate.get(name);
		if (typeof value !== "string" && !(name === "diff_sha256" && value === null)) throw new BadInput("the gate entry of an action has values that are not text");
	}
	const [gateId, record, digest, decision, diffSha256] = names.map((name) => gate.get(name));
	return {
		fields,
		receiptHash,
		gate: {
			gateId,
			record,
			digest,
			decision,
			diffSha256: diffSha256 ?? null,
			hasClientAnswer
		}
	};
}
/** Build the action from its sealed form. `blob` loads metadata that is stored as a blob. */
async function loadAction(sealed, blob) {
	const action = readAction(sealed.fields);
	const digest = metadataBlobDigest(action.metadata);
	if (digest === null) return action;
	const metadata = readJson(await blob(digest));
	if (metadata !== null && !isObject(metadata)) throw new BadInput("metadata must be an object");
	return {
		...action,
		metadata
	};
}
/** Read the content of a `run.seal`. `of` says where the seal is stored. */
function readRunSeal(content, of) {
	const result = readResult(content);
	const names = [
		"gates",
		"statement",
		"head",
		"run_id",
		"num_actions",
		"final_receipt_hash",
		"policy_verdict"
	];
	for (const name of names) if (!result.has(name)) throw new BadInput(`the run's seal cannot be read: it lacks ${name}`);
	const [gates, statement, head, runId, count, final, verdict] = names.map((name) => result.get(name));
	const place = [["ledger", of.ledger], ["tenant", of.tenant]];
	if (!isObject(head)) throw new BadInput("the run's seal cannot be read");
	if (gates !== null && !isObject(gates)) throw new BadInput("the run's seal cannot be read");
	const seal = {
		head: readHead(new Map([
			...place,
			["chain", of.chain],
			...head
		])),
		statement: statement === null ? null : readRunStatement(statement),
		gates: gates === null ? null : readHead(new Map([...place, ...gates]))
	};
	if (typeof runId !== "string" || !isInteger(count) || (count.value === 0 ? final !== null : typeof final !== "string")) throw new BadInput("the run's seal cannot be read");
	if (verdict !== null && !(typeof verdict === "string" && POLICY_VERDICTS.includes(verdict))) throw new BadInput("the run's seal has a verdict that is none");
	return {
		...seal,
		runId,
		numActions: count.value,
		finalReceiptHash: final,
		policyVerdict: verdict
	};
}
/** Read a decision's record; null where it is no decision. */
function readDecision(content) {
	if (readKind(content) !== "gate.decision") return null;
	const result = at(content, "outcome", "result");
	if (!isObject(result)) return null;
	const needed = [
		"gate_id",
		"decision",
		"digest",
		"score",
		"action",
		"instruction_sha256",
		"input_sha256"
	];
	if (!needed.every((name) => result.has(name))) return null;
	const [gateId, decision, digest, score, action, instructionHash, inputHash] = needed.map((name) => result.get(name));
	const policy = result.get("policy");
	if (isTrue(policy) && !isObject(policy)) return null;
	const refs = at(content, "context", "environment", "aver", "refs");
	if (isTrue(refs) && !isObject(refs)) return null;
	if (!isObject(action) || ![
		gateId,
		decision,
		digest
	].every((text) => typeof text === "string")) return null;
	return {
		gateId,
		decision,
		digest,
		score,
		type: action.get("type"),
		diffSha256: action.get("diff_sha256"),
		files: action.get("files"),
		instructionHash,
		inputHash,
		isObserved: result.get("mode") === "observe"
	};
}
/** Whether Python takes a value for true. */
function isTrue(value) {
	if (value instanceof JsonNumber) return value.value !== 0;
	if (Array.isArray(value)) return value.length > 0;
	return isObject(value) ? value.size > 0 : Boolean(value);
}
/** Compare an action with the one that was gated. The twin of `aver.actions.binding`. */
function compareWithDecision(action, mark, decided) {
	const none = (value) => value === void 0 || value === null;
	const files = action.metadata?.get("files_affected");
	const areDiffsKnown = mark.diffSha256 !== null && !none(decided.diffSha256);
	const areFilesKnown = isTrue(files) && isTrue(decided.files);
	const hasHash = !none(decided.instructionHash) || !none(decided.inputHash);
	let mismatch = null;
	if (mark.gateId !== decided.gateId || mark.digest !== decided.digest) mismatch = "the decision it names is about something else";
	else if (action.gate_decision !== decided.decision || mark.decision !== decided.decision) mismatch = `it says that the gate decided ${action.gate_decision}; the gate's record says ${decided.decision}`;
	else if (!equalJson(action.gate_score, decided.score)) mismatch = "it says another score than the gate's record";
	else if (action.action_type !== decided.type) mismatch = `it is a ${action.action_type}; the gated action is another`;
	else if (["human_review", "human_approved"].includes(decided.decision) && mark.diffSha256 !== null && none(decided.diffSha256)) mismatch = "a change was made, and the person was shown none";
	else if (areDiffsKnown && mark.diffSha256 !== decided.diffSha256) mismatch = "the change that was made is not the one that was gated";
	else if (!none(decided.instructionHash) && decided.instructionHash !== action.instruction_hash) mismatch = "its instruction is not the one that was gated";
	else if (!none(decided.inputHash) && decided.inputHash !== action.input_hash) mismatch = "its input is not the one that was gated";
	else if (areFilesKnown && !equalJson(files, decided.files)) mismatch = "the files that it says it affects are not those that were gated";
	return {
		mismatch,
		isConclusive: hasHash || areDiffsKnown || areFilesKnown
	};
}
// src/verify/approvals/tools.json
var tools_default = {
	"descriptive": {
		"description": "Agent Bash Task",
		"explanation": "codebase_search delete_file file_search grep_search list_dir read_file run_terminal_cmd web_search",
		"justification": "exec_command local_shell shell shell_command",
		"task_progress": "execute_command read_file write_to_file"
	},
	"telling": {
		"cmd": "exec_command",
		"command": "Bash Monitor execute_command local_shell run_terminal_cmd shell shell_command",
		"content file_path": "Write",
		"content path": "write_to_file",
		"target_file": "delete_file"
	}
};
// src/verify/approvals/content.ts
/** The contents that people sign: enrolments and votes. It needs no curve, so the page's own thread uses it, too. */
/** The content of an enrolment. It names the ledger, so it is invalid in another ledger. */
function enrolmentContent({ identity, key, custody }, ledger, tenant, at) {
	const parts = key instanceof Passkey ? [["passkey", key.fields()]] : [["public_key", key.ed25519], ["public_key_pq", key.mlDsa]];
	return new Map([
		["identity", identity],
		...parts,
		["custody", custody],
		["ledger", ledger],
		["tenant", tenant],
		["at", at]
	]);
}
/** The digest of all that a request gives a person to read. */
function shownSha256({ opened, content }) {
	return sha256Hex(canonicalJson(/* @__PURE__ */ new Map([["opened", opened], ["request", content]])));
}
/** The content that a person signs: exactly that of the version that the request wants. `shown` is a digest. */
function voteContent(request, word, approver, shown, { scope = request.scope, uses = 1 } = {}) {
	const content = /* @__PURE__ */ new Map([
		["digest", request.digest],
		["decision", word],
		["approver", approver],
		["expires", request.expires],
		["shown", shown]
	]);
	if (request.statement === 1) return content;
	return new Map([
		...content,
		["v", new JsonNumber(String(request.statement))],
		["ledger", request.ledger],
		["tenant", request.tenant],
		["request", request.id],
		["scope", scope],
		["uses", new JsonNumber(String(uses))],
		...request.statement === 3 ? [["shown_sha256", shownSha256(request)]] : []
	]);
}
// src/verify/passkey_signature.ts
/**
* Verifies the signatures of passkeys. The twin of `aver.keys.passkey`, which lists the rules in order.
*/
var AUTHENTICATOR_DATA_MIN = 37;
var FLAGS_AT = 32;
var USER_PRESENT = 1;
var USER_VERIFIED = 4;
var PORT_MAX = 65535;
var ORIGIN = /^(https?):\/\/([a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?$/;
/** Whether the bytes of a P-256 key are a point of the curve. */
function isP256Point(publicKey) {
	try {
		P256.fromHex(publicKey).assertValidity();
		return true;
	} catch {
		return false;
	}
}
/** Why a signature of the bytes of a statement does not hold; null if it holds. Raises nothing. */
function passkeyProblem(passkey, message, signed, ed25519) {
	try {
		const data = decodeBase64url(signed.authenticator_data);
		const client = decodeBase64url(signed.client_data);
		const signature = decodeBase64url(signed.signature);
		const problem = clientDataProblem(client, passkey.rpId, statementChallenge(message)) ?? authenticatorDataProblem(data, passkey.rpId);
		if (problem !== null) return problem;
		const covered = new Uint8Array(data.length + 32);
		covered.set(data);
		covered.set(sha256Bytes(client), data.length);
		if (passkey.alg === "ES256") return es256Problem(passkey.publicKey, covered, signature);
		return ed25519.verify(passkey.publicKey, covered, toHex(signature)) ? null : "its signature is not that of the key";
	} catch (error) {
		if (error instanceof BadInput) return error.message;
		throw error;
	}
}
function clientDataProblem(client, rpId, challenge) {
	const found = readJson(client);
	if (!isObject(found)) return "client_data is not an object";
	if (found.get("type") !== "webauthn.get") return "client_data is not of the type webauthn.get";
	if (found.get("challenge") !== challenge) return "it was signed for another statement";
	if (found.has("crossOrigin") && found.get("crossOrigin") !== false) return "it was signed inside a page of another origin";
	return isOriginOf(found.get("origin"), rpId) ? null : `it was signed on a page that does not belong to ${rpId}`;
}
/** Whether a page of this origin may use the passkeys of `rpId`. */
function isOriginOf(origin, rpId) {
	const match = typeof origin === "string" ? ORIGIN.exec(origin) : null;
	if (match === null) return false;
	const [, scheme, host, port] = match;
	if (port !== void 0 && Number(port) > PORT_MAX) return false;
	if (rpId === "localhost") return scheme === "http" && host === "localhost";
	return scheme === "https" && (host === rpId || host.endsWith(`.${rpId}`) && RP_ID.test(host));
}
function authenticatorDataProblem(data, rpId) {
	const site = toHex(sha256Bytes(encoder.encode(rpId)));
	if (data.length < AUTHENTICATOR_DATA_MIN || toHex(data.subarray(0, FLAGS_AT)) !== site) return `authenticator_data is not that of ${rpId}`;
	const flags = data[FLAGS_AT];
	if (!(flags & USER_PRESENT)) return "nobody was present at the authenticator";
	return flags & USER_VERIFIED ? null : "the authenticator did not verify the person";
}
function es256Problem(publicKey, message, signature) {
	const read = readDer(signature);
	if (read === null) return "its signature is not in DER";
	const { r, s } = read;
	if (s > 115792089210356248762697446949407573529996955224135760342422259061068512044369n / 2n) return "its signature has a high S: write n - S instead";
	if (r < 1n || r >= 115792089210356248762697446949407573529996955224135760342422259061068512044369n || s < 1n) return "its signature is not that of the key";
	try {
		const inverse = P256.Fn.inv(s);
		const digest = BigInt(`0x${toHex(sha256Bytes(message))}`) % P256_ORDER;
		const key = P256.fromHex(publicKey);
		key.assertValidity();
		const sum = mulAddUnsafe(P256, [P256.BASE, key], [P256.Fn.mul(digest, inverse), P256.Fn.mul(r, inverse)]);
		return !sum.equals(P256.ZERO) && sum.toAffine().x % 115792089210356248762697446949407573529996955224135760342422259061068512044369n === r ? null : "its signature is not that of the key";
	} catch {
		return "its signature is not that of the key";
	}
}
// src/verify/approvals/roster.ts
/** The roster: the people whose approvals count, from the chain `approvers.<tenant>`. The twin of `gate.approvals.roster`. */
var CUSTODIES = [
	"passphrase",
	"ssh-agent",
	"file",
	"passkey"
];
var PASSKEY = "passkey";
/** The custodies of keys that make a passkey independent by their endorsement. */
var VOUCHING = ["passphrase", "ssh-agent"];
var PERSON = /^person:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;
/** Whether no other program of the user can have made the signatures of this approver. */
function isIndependent({ custody, endorsers }) {
	return custody === "passkey" ? endorsers.some((endorser) => VOUCHING.includes(endorser.custody)) : custody !== "file";
}
/** The whole public key in hex. */
function wholeKey(key) {
	return key instanceof Passkey ? key.publicKey : key.ed25519;
}
function isSameKey(one, other) {
	return one instanceof Passkey ? one.equals(other) : other instanceof PublicKey && one.equals(other);
}
/** What the ring knows about a key. It has no passkeys, but may have the Ed25519 key of one as another's. */
function findRingEntry(ring, key) {
	if (key instanceof PublicKey) return ring.entryOf(key);
	return key.alg === "EdDSA" ? ring.entryOf(new PublicKey(key.publicKey)) : null;
}
function isPerson(value) {
	return typeof value === "string" && PERSON.test(value);
}
/** Read an approver. Raises `BadInput`. */
function readApprover(identity, data, where) {
	const isPasskey = isObject(data) && data.get("custody") === "passkey";
	const object = checkObject(data, where, [isPasskey ? "passkey" : "public_key", "custody"], isPasskey ? [] : ["public_key_pq"]);
	if (!isPerson(identity)) throw new BadInput(`${where}: it names no person`);
	if (isPasskey) return {
		identity,
		key: new Passkey(object.get("passkey"), where),
		custody: PASSKEY,
		endorsers: []
	};
	const key = new PublicKey(object.get("public_key"), object.has("public_key_pq") ? object.get("public_key_pq") : "");
	const custody = object.get("custody");
	if (typeof custody !== "string" || !CUSTODIES.includes(custody)) throw new BadInput(`${where}.custody is none`);
	return {
		identity,
		key,
		custody,
		endorsers: []
	};
}
/** A text that names a person and one key. */
function approverKey({ identity, key }) {
	if (key instanceof Passkey) return [
		identity,
		key.alg,
		key.publicKey,
		key.rpId,
		key.credential
	].join("\n");
	return [
		identity,
		key.ed25519,
		key.mlDsa
	].join("\n");
}
/** Why a statement has no valid signature of this key; null if it has one. */
function signatureProblem(statement, key, verifier) {
	if (key instanceof PublicKey) return checkStatement(statement, new Ring([key]), verifier).some((result) => result.by === key.fingerprint && result.outcome === "valid") ? null : "it does not hold";
	const message = statementBytes(statement.purpose, statement.content);
	let problem = "it is not there";
	for (const { by, passkey } of statement.signatures) {
		if (by !== key.fingerprint || passkey === null) continue;
		problem = passkeyProblem(key, message, passkey, verifier);
		if (problem === null) return null;
	}
	return problem;
}
/** The people who may approve now, and the keys that no longer count. */
var Roster = class {
	approvers = /* @__PURE__ */ new Map();
	/** The times at which keys were replaced or withdrawn, by fingerprint. */
	ended = /* @__PURE__ */ new Map();
	known = /* @__PURE__ */ new Set();
	/** Fingerprints and whole keys: one Ed25519 key has two fingerprints, as a key and as a passkey. */
	keys = /* @__PURE__ */ new Set();
	constructor(verifier, ledger, tenant) {
		this.verifier = verifier;
		this.ledger = ledger;
		this.tenant = tenant;
	}
	/** Whether this pair of identity and key was ever on the roster. */
	hasHad(approver) {
		return this.known.has(approverKey(approver));
	}
	hasHadKey(key) {
		return this.keys.has(key.fingerprint) || this.keys.has(wholeKey(key));
	}
	/** Apply one more record. Returns the approver that it put on the roster. Raises `BadInput` if it changes nothing. */
	apply(record, retired) {
		const ended = new Set([...retired].filter(([, when]) => when < record.signed_at).map(([key]) => key));
		const chain = at(record.content, "authority", "chain");
		if (!Array.isArray(chain) || !chain.length) throw new BadInput("it cannot be read");
		const statement = readStatement(chain[0]);
		switch (record.kind) {
			case "key.create": return this.enrol(statement, ended);
			case "key.rotate": return this.rotate(statement);
			case "key.retire":
				this.withdraw(statement, ended);
				return null;
			default: throw new BadInput(`it is of the kind ${record.kind}`);
		}
	}
	enrol(statement, ended) {
		const content = this.readContent(statement, "enrolment");
		const described = /* @__PURE__ */ new Map();
		const names = need(content, "custody") === "passkey" ? ["passkey"] : ["public_key", "public_key_pq"];
		for (const name of [...names, "custody"]) described.set(name, need(content, name));
		const approver = readApprover(need(content, "identity"), described, "enrolment");
		if (!equalJson(content, enrolmentContent(approver, this.ledger, this.tenant, need(content, "at")))) throw new BadInput("the enrolment says more than it should");
		if (!isUsable(approver.key)) throw new BadInput(`${approver.key.fingerprint} is not a usable public key`);
		if (signatureProblem(statement, approver.key, this.verifier) !== null) throw new BadInput("the enrolment is not signed by the key itself");
		if (approver.custody === "passkey" && !this.hasKeyBesidePasskeys(approver.identity)) throw new BadInput("a passkey is enrolled only beside an approver whose key is no passkey");
		const endorsers = this.findEndorsers(statement, /* @__PURE__ */ new Set([...ended, wholeKey(approver.key)]));
		if (this.known.size && !endorsers.length) throw new BadInput("the enrolment is not signed by anyone who was on the roster");
		if (this.hasHadKey(approver.key)) throw new BadInput("the key was on the roster before");
		return this.put({
			...approver,
			endorsers
		}, need(content, "at"));
	}
	rotate(statement) {
		const { content } = statement;
		const before = this.approvers.get(need(content, "identity"));
		if (before === void 0) throw new BadInput("it cannot be read");
		const [old, next] = [readKey(need(content, "old")), readKey(need(content, "new"))];
		const when = timeField(need(content, "at"), "rotation.at");
		if (statement.purpose !== "rotation" || !isSameKey(old, before.key)) throw new BadInput("the rotation is not of the key that is on the roster");
		if (this.hasHadKey(next)) throw new BadInput("the key was on the roster before");
		if ([old, next].some((key) => signatureProblem(statement, key, this.verifier) !== null)) throw new BadInput("the rotation is not signed by both keys");
		return this.put({
			...before,
			key: next,
			endorsers: []
		}, when);
	}
	withdraw(statement, ended) {
		const content = this.readContent(statement, "withdrawal");
		const gone = this.approvers.get(need(content, "identity"));
		if (gone === void 0) throw new BadInput("it cannot be read");
		if (gone.key.fingerprint !== need(content, "fingerprint")) throw new BadInput("the withdrawal is not of the key that is on the roster");
		if (!this.findEndorsers(statement, ended).length) throw new BadInput("the withdrawal is not signed by anyone on the roster");
		if (this.approvers.size === 1) throw new BadInput(`${gone.identity} is the last approver`);
		if (!this.hasKeyBesidePasskeys(gone.identity)) throw new BadInput(`${gone.identity} is the last approver whose key is no passkey`);
		this.approvers.delete(gone.identity);
		this.ended.set(gone.key.fingerprint, need(content, "at"));
	}
	put(approver, when) {
		const before = this.approvers.get(approver.identity);
		if (before !== void 0) this.ended.set(before.key.fingerprint, when);
		this.approvers.set(approver.identity, approver);
		this.known.add(approverKey(approver));
		this.keys.add(approver.key.fingerprint).add(wholeKey(approver.key));
		return approver;
	}
	readContent(statement, purpose) {
		const { content } = statement;
		if (statement.purpose !== purpose) throw new BadInput(`its statement is of the purpose ${statement.purpose}, not ${purpose}`);
		if (need(content, "ledger") !== this.ledger || need(content, "tenant") !== this.tenant) throw new BadInput("its statement was made for another ledger or tenant");
		timeField(need(content, "at"), `${purpose}.at`);
		return content;
	}
	/** Whether somebody other than `without` is on the roster whose key is no passkey. */
	hasKeyBesidePasskeys(without) {
		return [...this.approvers.values()].some(({ identity, custody }) => identity !== without && custody !== "passkey");
	}
	/** The approvers who signed a statement with a key other than those in `but`, which has whole keys. */
	findEndorsers(statement, but) {
		const named = new Set(statement.signatures.map((signature) => signature.by));
		return [...this.approvers.values()].filter(({ key }) => named.has(key.fingerprint) && !but.has(wholeKey(key)) && signatureProblem(statement, key, this.verifier) === null).map((approver) => ({
			...approver,
			endorsers: []
		}));
	}
};
/** The value of a key that must be there. Raises `BadInput`. */
function need(data, name) {
	const value = data.get(name);
	if (value === void 0) throw new BadInput("it cannot be read");
	return value;
}
function readKey(data) {
	if (!isObject(data)) throw new BadInput("it cannot be read");
	return new PublicKey(need(data, "public_key"), need(data, "public_key_pq"));
}
/** Whether the bytes of a key can be the public half of a key pair. */
function isUsable(key) {
	return key instanceof Passkey && key.alg !== "EdDSA" ? isP256Point(key.publicKey) : isPrimeOrderPoint(wholeKey(key));
}
var LEVELS_MAX = 8;
var APPROVERS_MAX = 64;
var EXPIRES_MAX = 604800;
var USES_MAX = 100;
var WORKSPACE = "workspace";
var PERSON_WORDS = [
	"approve",
	"deny",
	"escalate"
];
var VOTE_WORDS = [
	...PERSON_WORDS,
	"expired",
	"closed",
	"used"
];
var EMPTY_SHA256 = sha256Hex("");
var GATE_ID = /^[!-~]{1,128}$/;
function integerField(value, where, low, high) {
	if (!isInteger(value) || !(value.value >= low && value.value <= high)) throw new BadInput(`${where} must be a whole number from ${low} to ${high}`);
	return value.value;
}
function readLevel(data, where) {
	const object = checkObject(data, where, [
		"approvers",
		"quorum",
		"after"
	]);
	const listed = object.get("approvers");
	if (!Array.isArray(listed) || listed.length > APPROVERS_MAX || !listed.every(isPerson)) throw new BadInput(`${where}.approvers must be a list of people`);
	if (new Set(listed).size < listed.length) throw new BadInput(`${where}.approvers names someone twice`);
	return {
		approvers: listed,
		quorum: integerField(object.get("quorum"), `${where}.quorum`, 1, APPROVERS_MAX),
		after: integerField(object.get("after"), `${where}.after`, 0, EXPIRES_MAX)
	};
}
/** Read the request in a record. Raises `BadInput` if it is not a valid request. */
function readRequest(record, ledger, tenant) {
	const { content } = record;
	const required = [...[
		"v",
		"digest",
		"gate_id",
		"action",
		"diff",
		"risk",
		"reasons",
		"rules",
		"bundle"
	], ...[
		"expires",
		"levels",
		"approvers",
		"anchor"
	]];
	const result = checkObject(at(content, "outcome", "result"), "the request", required, [...[
		"statement",
		"scope",
		"uses",
		"digest_version",
		"beside"
	]]);
	checkVersion(result.get("v"), "the request");
	const binding = readBinding(result);
	const digestVersion = readDigestVersion(result);
	if (binding.statement === 3 !== (digestVersion === 3)) throw new BadInput("the request has a statement and a digest of two versions");
	const listed = result.get("levels");
	if (!Array.isArray(listed) || listed.length < 1 || listed.length > LEVELS_MAX) throw new BadInput("the request has no levels, or too many");
	const given = result.get("approvers");
	if (!isObject(given)) throw new BadInput("the record is not a request for approval");
	const approvers = new Map([...given].map(([name, data]) => [name, readApprover(name, data, `the request: approvers.${name}`)]));
	const levels = listed.map((item, number) => readLevel(item, `the request: levels[${number}]`));
	const deciding = new Set(levels.flatMap((level) => level.approvers));
	if (deciding.size !== approvers.size || ![...deciding].every((name) => approvers.has(name))) throw new BadInput("the request does not give a key for exactly those who decide");
	if (new Set([...approvers.values()].map((one) => one.key.fingerprint)).size < approvers.size) throw new BadInput("two people have one key");
	textField(result.get("gate_id"), "the request: gate_id", GATE_ID);
	return {
		ledger,
		tenant,
		id: record.id,
		opened: timeField(readBlock(content)?.get("at"), "the request: at"),
		expires: timeField(result.get("expires"), "the request: expires"),
		digest: textField(result.get("digest"), "the request: digest", HEX64),
		levels,
		approvers,
		anchor: pythonText(result.get("anchor")),
		content: result,
		...binding,
		digestVersion
	};
}
function readBinding(result) {
	const found = [
		"statement",
		"scope",
		"uses"
	].filter((name) => result.has(name));
	if (!found.length) return {
		statement: 1,
		scope: ""
	};
	if (found.length < 3) throw new BadInput("the request lacks statement, scope or uses");
	const statement = integerField(result.get("statement"), "the request: statement", 2, 3);
	integerField(result.get("uses"), "the request: uses", 1, 1);
	const scope = result.get("scope");
	if (typeof scope !== "string" || !scope.startsWith("session:")) throw new BadInput("the request: scope must be the one of a session");
	return {
		statement,
		scope
	};
}
function readDigestVersion(result) {
	const found = ["digest_version", "beside"].filter((name) => result.has(name));
	if (!found.length) return 1;
	if (found.length < 2) throw new BadInput("the request lacks digest_version or beside");
	return integerField(result.get("digest_version"), "the request: digest_version", 2, 3);
}
/** The digest of the blob with a part of a request; null if the part is in the record itself. */
function blobDigest(request, part) {
	const value = request.content.get(part);
	if (!isObject(value) || value.size !== 1 || !value.has("blob")) return null;
	return blobReferences(value).next().value?.digest ?? null;
}
/** Whether the request is for the session of this action. One that wants version 1 does not say. */
function hasScopeOf(request, action) {
	const session = action.has("session") ? pythonText(action.get("session")) : "";
	return request.statement === 1 || request.scope === `session:${session}`;
}
/** Whether a request has the digest and session of its action, and the action's diff, as far as they are here. */
function matchesAction(request) {
	const apart = blobDigest(request, "action");
	if (apart !== null) return apart === request.digest;
	const action = request.content.get("action");
	try {
		if (sha256Hex(canonicalContent(action)) !== request.digest || !isObject(action)) return false;
		if (request.digestVersion === 1 && !hasScopeOf(request, action)) return false;
		if (request.digestVersion !== 1 && blobDigest(request, "beside") === null && !fitsWithRest(request, action)) return false;
		const diff = blobDigest(request, "diff");
		if (diff !== null) return diff === action.get("diff_sha256");
		const text = request.content.get("diff");
		return (action.get("diff_sha256") ?? null) === (text === null ? null : sha256Hex(pythonText(text)));
	} catch (error) {
		if (error instanceof BadInput) return false;
		throw error;
	}
}
/** Whether the part of an action that the digest covers and the rest fit together. */
function fitsWithRest(request, bound) {
	const beside = checkObject(request.content.get("beside"), "the request: beside", [
		"description",
		"session",
		"arguments"
	]);
	const [left, kept, diff] = [
		beside.get("arguments"),
		bound.get("arguments"),
		bound.get("diff_sha256")
	];
	const { digestVersion } = request;
	if (!isObject(left) || !isObject(kept) || [...left.keys()].some((name) => kept.has(name))) return false;
	const isDescribed = digestVersion === 3 ? bound.has("description") : !kept.size && !isTrue(bound.get("files")) && diff === null;
	const names = [
		"v",
		"type",
		"tool",
		"files",
		"diff_sha256",
		"workspace",
		"caller",
		"on_behalf_of",
		"arguments",
		"request_sha256"
	];
	checkObject(bound, "the action", isDescribed ? [...names, "description"] : names);
	if (isDescribed && !equalJson(bound.get("description"), beside.get("description"))) return false;
	return equalJson(bound.get("v"), new JsonNumber(String(digestVersion))) && hasScopeOf(request, beside);
}
/** The description that the person was shown. Raises `BadInput` if it cannot be read. */
async function readDescription(request, blob) {
	const apart = blobDigest(request, "beside");
	let beside = request.content.get("beside");
	if (apart !== null) {
		const raw = await blob(apart);
		if (sha256Hex(raw) !== apart) throw new BadInput("a blob has other bytes");
		beside = readJson(raw);
	}
	const words = at(beside, "description");
	if (typeof words !== "string") throw new BadInput("the request has no description");
	return words;
}
/** The arguments that a table has for a tool. A test holds the tables to Aver's own. */
function listArguments(table, tool) {
	return Object.entries(table).flatMap(([names, listed]) => listed.split(" ").includes(tool) ? names.split(" ") : []);
}
/** Whether only its description says what an action would do. The twin of `aver.gate.action.is_description_needed`. */
function needsDescription(action) {
	const [tool, given, diff] = [
		"tool",
		"arguments",
		"diff_sha256"
	].map((name) => action.get(name));
	const telling = listArguments(tools_default.telling, tool);
	const isTold = telling.length && telling.every((name) => isObject(given) && isTrue(given.get(name)));
	return ((diff ?? null) === null || diff === EMPTY_SHA256) && !isTold;
}
function isByPerson(vote) {
	return PERSON_WORDS.includes(vote.word);
}
/** The id of the request and the vote in a record. Raises `BadInput` for an unreadable vote. */
function readVote(record) {
	const { content } = record;
	const result = at(content, "outcome", "result");
	const when = () => timeField(readBlock(content)?.get("at"), "the decision: at");
	if (record.kind === "approval.use") {
		const use = checkObject(result, "the use", [
			"v",
			"request",
			"digest",
			"number",
			"uses",
			"scope",
			"session",
			"call_id",
			"approvers",
			"level"
		]);
		checkVersion(use.get("v"), "the use");
		const texts = [
			"digest",
			"scope",
			"session",
			"call_id"
		].map((name) => use.get(name));
		const approvers = use.get("approvers");
		if (!Array.isArray(approvers) || ![...texts, ...approvers].every((text) => typeof text === "string")) throw new BadInput("the use is none");
		const [digest, scope, session] = texts;
		return {
			about: pythonText(use.get("request")),
			vote: {
				at: when(),
				word: "used",
				level: integerField(use.get("level"), "the use: level", 0, LEVELS_MAX),
				approver: null,
				custody: null,
				shown: null,
				statement: null,
				use: {
					digest,
					scope,
					session,
					number: integerField(use.get("number"), "the use: number", 1, USES_MAX),
					uses: integerField(use.get("uses"), "the use: uses", 1, USES_MAX),
					approvers
				}
			}
		};
	}
	const vote = checkObject(result, "the decision", [
		"v",
		"request",
		"digest",
		"decision",
		"approver",
		"custody",
		"level",
		"comment",
		"shown"
	]);
	checkVersion(vote.get("v"), "the decision");
	const [word, custody, approver, comment] = [
		"decision",
		"custody",
		"approver",
		"comment"
	].map((name) => vote.get(name));
	const isCustody = custody === null || typeof custody === "string" && CUSTODIES.includes(custody);
	if (typeof word !== "string" || !VOTE_WORDS.includes(word) || !isCustody || typeof comment !== "string") throw new BadInput("the decision is none");
	if (!(approver === null || typeof approver === "string")) throw new BadInput("the decision has no approver");
	const chain = at(content, "authority", "chain");
	if (!Array.isArray(chain)) throw new BadInput("the decision cannot be read");
	if (PERSON_WORDS.includes(word) && !chain.length) throw new BadInput("the decision cannot be read");
	const shown = isTrue(vote.get("shown")) ? blobReferences(vote.get("shown")).next().value?.digest ?? null : null;
	return {
		about: pythonText(vote.get("request")),
		vote: {
			at: when(),
			word,
			level: integerField(vote.get("level"), "the decision: level", 0, LEVELS_MAX),
			approver,
			custody,
			shown,
			statement: PERSON_WORDS.includes(word) ? readStatement(chain.at(-1)) : null,
			use: null
		}
	};
}
function levelsFor(request, identity) {
	return request.levels.flatMap((level, index) => level.approvers.includes(identity) ? [index + 1] : []);
}
/** The scope and the uses that a statement says, if a person may choose them; else those of the request. */
function readChoice(request, statement, word) {
	const [scope, uses] = [statement.content.get("scope"), statement.content.get("uses")];
	if (word !== "approve" || request.statement === 1 || request.digestVersion === 1) return {
		scope: request.scope,
		uses: 1
	};
	const action = request.content.get("action");
	const namesRequest = isObject(action) && isTrue(action.get("request_sha256"));
	const isCount = isInteger(uses) && uses.value >= 1 && uses.value <= USES_MAX;
	return {
		scope: scope === WORKSPACE && !namesRequest ? WORKSPACE : request.scope,
		uses: isCount ? uses.value : 1
	};
}
/** Why a vote does not count by itself; null if it counts. */
function voteProblem(request, vote, verifier) {
	const { statement, approver } = vote;
	if (statement === null || approver === null || vote.shown === null || !HEX64.test(vote.shown)) return ["SIG_MISSING", "it is not signed by anyone"];
	if (statement.purpose !== "approval") return ["STATEMENT_MISMATCH", `its statement is of the purpose ${statement.purpose}`];
	if (statement.content.get("digest") !== request.digest) return ["DIGEST_MISMATCH", "it was signed for another action"];
	const { scope, uses } = readChoice(request, statement, vote.word);
	const expected = voteContent(request, vote.word, approver, vote.shown, {
		scope,
		uses
	});
	if (canonicalJson(statement.content) !== canonicalJson(expected)) return ["STATEMENT_MISMATCH", "it was signed for something else"];
	if (!levelsFor(request, approver).length) return ["NOT_LISTED", `${approver} is not among those who decide this`];
	const pinned = request.approvers.get(approver);
	if (statement.signatures.length !== 1 || statement.signatures[0]?.by !== pinned.key.fingerprint) return ["UNKNOWN_KEY", `it is signed by another key than that of ${approver} in the request`];
	if (pinned.custody === "passkey" && request.statement === 1) return ["STATEMENT_MISMATCH", "a passkey signs no statement that names no request"];
	const problem = signatureProblem(statement, pinned.key, verifier);
	if (problem !== null) return ["SIG_INVALID", `the signature of ${approver} does not hold: ${problem}`];
	if (vote.at > request.expires) return ["EXPIRED", `it came at ${vote.at}; the request expired at ${request.expires}`];
	if (vote.at < request.opened) return ["CLOCK_BACKWARDS", `it came at ${vote.at}, before the request was opened`];
	return null;
}
/** Why a valid vote does not count now: it is not the person's turn, or they voted before. */
function turnProblem(request, vote, approvals, floor) {
	if (vote.word === "deny") return null;
	if (vote.word === "approve" && approvals.some((earlier) => earlier.approver === vote.approver)) return ["ALREADY_DECIDED", `${vote.approver} has approved before`];
	const level = findOpenLevel(request, vote, floor);
	if (level === 0) {
		const last = levelsFor(request, vote.approver ?? "").at(-1) ?? 0;
		return last < floor ? ["PASSED_ON", `level ${floor} decides now`] : ["NOT_YET", `level ${last} decides later, or when asked`];
	}
	if (vote.word === "escalate" && level === request.levels.length) return ["NO_LEVEL", "nobody is above"];
	return null;
}
function findOpenLevel(request, vote, floor) {
	return levelsFor(request, vote.approver ?? "").find((number) => canCount(request, vote, number, floor)) ?? 0;
}
function canCount(request, vote, number, floor) {
	const level = request.levels[number - 1];
	if (number < floor || !level.approvers.includes(vote.approver ?? "")) return false;
	return number === floor || vote.at >= addSeconds(request.opened, level.after);
}
/** The time so many seconds later, in the format of records. */
function addSeconds(moment, seconds) {
	const fraction = /\.(\d{6})/.exec(moment)?.[1] ?? "";
	const date = new Date(Date.parse(`${moment.slice(0, 19)}Z`) + 1e3 * seconds);
	if (date.getUTCFullYear() > 9999) throw new Error("a time beyond the calendar");
	return `${date.toISOString().slice(0, 19)}${fraction === "" || fraction === "000000" ? "" : `.${fraction}`}+00:00`;
}
/** The state of a request at `now`. `newest` is the latest time in the chain since the request was opened. */
function computeState(request, votes, verifier, now, newest = "") {
	const pending = {
		state: "pending",
		reason: "too few have approved",
		floor: 1,
		scope: "",
		uses: 0,
		used: 0,
		approvers: [],
		validApprovals: []
	};
	let ending = null;
	for (const vote of votes) {
		if (vote.word === "used" && vote.use === null) return {
			...pending,
			state: "used",
			reason: `it was used at ${vote.at}`,
			used: 1,
			floor: 1,
			validApprovals: []
		};
		if (vote.word === "used") {
			pending.used++;
			continue;
		}
		if (!isByPerson(vote)) {
			ending ??= vote;
			continue;
		}
		const problem = voteProblem(request, vote, verifier) ?? turnProblem(request, vote, pending.validApprovals, pending.floor);
		if (vote.word === "deny") ending ??= vote;
		if (problem !== null) continue;
		if (vote.word === "escalate") pending.floor = findOpenLevel(request, vote, pending.floor) + 1;
		else if (vote.word === "approve") pending.validApprovals.push(vote);
	}
	const approved = findApproval(request, pending);
	if (pending.used && (approved === null || pending.used >= approved.uses)) return {
		...approved ?? pending,
		state: "used",
		reason: `it was used ${pending.used} times`
	};
	if (ending !== null) {
		const state = ending.word === "expired" ? "expired" : ending.word === "closed" ? "closed" : "denied";
		return {
			...pending,
			state,
			reason: `${state} at ${ending.at}`
		};
	}
	if ((now > newest ? now : newest) > request.expires) return {
		...pending,
		state: "expired",
		reason: `nobody decided until ${request.expires}`
	};
	return approved ?? pending;
}
/** The state of an approved request; null if no open level has its quorum. The lowest such level decides. */
function findApproval(request, pending) {
	for (let number = pending.floor; number <= request.levels.length; number++) {
		const approvals = pending.validApprovals.filter((vote) => canCount(request, vote, number, pending.floor));
		if (approvals.length < request.levels[number - 1].quorum) continue;
		const chosen = approvals.map((vote) => readChoice(request, vote.statement, vote.word));
		const isWide = chosen.length > 0 && chosen.every(({ scope }) => scope === WORKSPACE);
		return {
			...pending,
			state: "approved",
			reason: "",
			approvers: approvals.map((vote) => String(vote.approver)),
			scope: isWide ? WORKSPACE : request.scope,
			uses: chosen.length ? Math.min(...chosen.map(({ uses }) => uses)) : 1
		};
	}
	return null;
}
/** Why an approval in the state `before` does not cover a use; null if it does. */
function useProblem(request, before, use) {
	if (use.digest !== request.digest) return ["DIGEST_MISMATCH", "it was used for another action"];
	if (before.state === "used") return ["REPLAY", `the approval was used before: ${before.reason}`];
	if (before.state !== "approved") return ["NOT_APPROVED", `it was used while it was ${before.state}: ${before.reason}`];
	if (before.scope !== WORKSPACE && before.scope !== `session:${use.session}`) return ["SCOPE_MISMATCH", "it was used in another session"];
	return use.number === before.used + 1 && use.uses === before.uses && use.scope === before.scope && use.approvers.join("\n") === before.approvers.join("\n") ? null : ["EVIDENCE_INVALID", "it says something else than people signed"];
}
// src/verify/approvals/examiner.ts
/** Proving approvals afterwards, under the check `approvals`. The twin of `gate.approvals.verify`, which lists the rules. */
var CHECK$4 = "approvals";
/** The verdict's code for a reason of refusal. Any other reason is a `STATE_VIOLATION`. */
var CODES = {
	SIG_MISSING: "SIG_MISSING",
	SIG_INVALID: "SIG_INVALID",
	UNKNOWN_KEY: "SIG_INVALID",
	KEY_RETIRED: "KEY_RETIRED",
	DIGEST_MISMATCH: "EVIDENCE_INVALID",
	STATEMENT_MISMATCH: "EVIDENCE_INVALID",
	NOT_LISTED: "ROLE_POLICY_VIOLATION",
	ALREADY_DECIDED: "REPLAY",
	REPLAY: "REPLAY",
	NOT_APPROVED: "EVIDENCE_INVALID",
	SCOPE_MISMATCH: "EVIDENCE_INVALID",
	EVIDENCE_INVALID: "EVIDENCE_INVALID"
};
var APPROVALS_EXAMINER = {
	domains: ["approvals", "approvers"],
	checks: [CHECK$4],
	examine
};
async function examine(examination) {
	const { reader, tenant } = examination;
	const roster = chainName("approvers", tenant);
	const approvals = chainName("approvals", tenant);
	const checker = new ApprovalChecker(examination);
	for (const [chain, check] of [[roster, (record) => checker.checkEnrolment(record)], [approvals, (record) => checker.checkRecord(record)]]) {
		if (!reader.has(chain)) continue;
		for await (const record of reader.read(chain)) await guard(checker.tally, CHECK$4, placeOf(record), async () => check(record));
	}
	let { tally } = checker;
	if (!examination.isComplete && !reader.has(roster)) {
		tally = new Tally();
		tally.skip(CHECK$4, "the approvers' enrolments are not here", { matters: true });
	}
	await checkWords(examination, checker.used, tally);
	return tally;
}
/** Hold the words of each decision that used an approval to those that the person was shown. `uses` has requests by the use's id. */
async function checkWords(examination, uses, tally) {
	const { reader } = examination;
	for (const chain of uses.size ? selectChains(examination, "gate") : []) for await (const record of reader.read(chain.origin)) {
		const decision = readDecision(record.content);
		const use = decision?.decision === "human_approved" ? at(record.content, "context", "environment", "aver", "refs", "approval") : null;
		const request = typeof use === "string" ? uses.get(use) : void 0;
		if (decision === null || request === void 0) continue;
		uses.delete(use);
		if (request.digestVersion === 1 || !needsDescription(at(record.content, "outcome", "result", "action"))) continue;
		try {
			const words = sha256Hex(await readDescription(request, (digest) => reader.blob(digest)));
			if ((isTrue(decision.instructionHash) ? decision.instructionHash : EMPTY_SHA256) === words) continue;
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			if (error instanceof NotFound) {
				tally.skip(CHECK$4, "words that were shown are not here", { matters: true });
				continue;
			}
		}
		tally.fail(CHECK$4, "EVIDENCE_INVALID", "its words are not those that were shown", placeOf(record));
	}
}
function placeOf(record) {
	const sequence = at(record.content, "sequence");
	return sequence instanceof JsonNumber && sequence.isInteger ? place(record.chain, BigInt(sequence.text)) : place(record.chain);
}
var ApprovalChecker = class {
	tally = new Tally();
	/** Each approver as enrolled. In a request, nobody signs how a key is kept. */
	enrolled = /* @__PURE__ */ new Map();
	knownPasskeys = /* @__PURE__ */ new Set();
	cases = /* @__PURE__ */ new Map();
	/** All requests, also those that count for nothing. */
	requests = /* @__PURE__ */ new Map();
	/** The requests whose approval was used, by the id of the use's record. */
	used = /* @__PURE__ */ new Map();
	signatures = /* @__PURE__ */ new Set();
	uses = /* @__PURE__ */ new Set();
	wanted = 1;
	newest = "";
	constructor(examination) {
		const { rules, ledger, tenant } = examination;
		this.examination = examination;
		this.retired = rules.ring.retirementTimes(rules.ed25519);
		this.roster = new Roster(rules.ed25519, ledger, tenant);
	}
	checkEnrolment(record) {
		this.tally.countDone(CHECK$4);
		let approver;
		try {
			approver = this.roster.apply(record, this.retired);
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			this.add(record, "failed", "ROLE_POLICY_VIOLATION", `the roster was not changed by this: ${error.message}`);
			return;
		}
		if (approver === null) return;
		this.enrolled.set(approverKey(approver), approver);
		if (approver.endorsers.some((endorser) => this.isKnown(endorser))) this.knownPasskeys.add(approverKey(approver));
		const problem = this.roleProblem(record, approver);
		if (problem !== null) this.add(record, "failed", "ROLE_POLICY_VIOLATION", problem);
	}
	/** Whether the ring has the key of an approver; of a passkey, that of somebody who endorsed it. */
	isKnown(approver) {
		const { key } = approver;
		if (!(key instanceof PublicKey)) return this.knownPasskeys.has(approverKey(approver));
		return this.examination.rules.ring.lookup(key.fingerprint).some((known) => known.equals(key));
	}
	/** Which key would make an approver known: their own, or of a passkey those of the people who endorsed it. */
	unknownWords(approver) {
		const words = `the ${approver.key instanceof PublicKey ? "key" : "passkey"} ${approver.key.fingerprint} of ${approver.identity} is not known here`;
		if (approver.key instanceof PublicKey) return words;
		const found = /* @__PURE__ */ new Map([[approverKey(approver), approver]]);
		for (const name of found.keys()) for (const endorser of this.enrolled.get(name)?.endorsers ?? []) found.set(approverKey(endorser), endorser);
		return `${words}: give ${[...found.values()].flatMap(({ key, identity }) => key instanceof PublicKey ? [`the key ${key.fingerprint} of ${identity}`] : []).join(", or ") || "the key of a person"}, who endorsed it`;
	}
	/** Why an approver's key cannot be a person's: it is known as another one, or it seals records here. */
	roleProblem(record, { key, identity }) {
		const { ring, roles } = this.examination.rules;
		const entry = findRingEntry(ring, key);
		const role = (entry === null ? roles.get(wholeKey(key)) : ring.roleOf(entry.key)) ?? null;
		const isOwn = role !== null && role.identity === identity && role.purpose === "approve";
		if (role !== null && !(isOwn && key instanceof PublicKey)) return `${key.fingerprint} is the key of ${role}, and not one with which ${identity} approves`;
		return record.signed_by === wholeKey(key).slice(0, 16) ? `${key.fingerprint} sealed this record itself` : null;
	}
	checkRecord(record) {
		const kind = readKind(record.content);
		if (![
			"approval.request",
			"approval.decision",
			"approval.use"
		].includes(kind)) return;
		try {
			this.tally.countDone(CHECK$4);
			if (kind === "approval.request") this.checkRequest(record);
			else this.checkAnswer(record);
		} finally {
			if (record.signed_at > this.newest) this.newest = record.signed_at;
		}
	}
	checkRequest(record) {
		const { ledger, tenant } = this.examination;
		const request = readRequest(record, ledger, tenant);
		this.requests.set(request.id, request);
		if (request.statement < this.wanted) {
			this.add(record, "failed", "STATE_VIOLATION", "a request before it wants a later statement");
			return;
		}
		this.wanted = request.statement;
		this.cases.set(request.id, {
			request,
			votes: [],
			newest: request.opened,
			isUsed: false
		});
		this.checkLeftOut(record, request);
		if (!matchesAction(request)) this.add(record, "failed", "EVIDENCE_INVALID", "its action or diff is not the one it names");
		else if (request.digestVersion === 3 && blobDigest(request, "action") === null) {
			const action = request.content.get("action");
			if (!action.has("description") && needsDescription(action)) this.add(record, "warning", "EVIDENCE_INVALID", "its digest leaves out its description");
		}
		if (request.anchor === "system") return;
		for (const approver of request.approvers.values()) {
			if (this.roster.hasHad(approver)) continue;
			const words = `it counts the key ${approver.key.fingerprint} of ${approver.identity}, who was never enrolled with it`;
			this.add(record, "failed", "ROLE_POLICY_VIOLATION", words);
		}
	}
	checkAnswer(record) {
		const { about, vote } = readVote(record);
		const request = this.requests.get(about);
		if (vote.word === "used" && request !== void 0) this.used.set(record.id, request);
		const found = this.cases.get(about);
		if (found === void 0) {
			this.add(record, "failed", "STATE_VIOLATION", "no request before it is the one it names");
			return;
		}
		if (isByPerson(vote)) this.checkVote(record, found, vote);
		else if (vote.word === "used") this.checkUse(record, found, vote);
		found.votes.push(vote);
		if (vote.at > found.newest) found.newest = vote.at;
	}
	/** Check that the approvals a use needs came before it, and that no more uses came than they allow. */
	checkUse(record, found, vote) {
		const { request } = found;
		const { ed25519 } = this.examination.rules;
		const before = computeState(request, found.votes, ed25519, vote.at, found.newest);
		if (vote.use !== null && request.digestVersion !== 1) {
			const problem = useProblem(request, before, vote.use);
			if (problem !== null) this.add(record, "failed", CODES[problem[0]], problem[1]);
			else this.checkAccount(record, found, before.validApprovals);
			return;
		}
		const use = request.statement === 1 ? `${request.digest}\n${request.expires}` : request.id;
		if (before.state === "used" || found.isUsed || this.uses.has(use)) {
			this.add(record, "failed", "REPLAY", "the approval was used before");
			return;
		}
		found.isUsed = true;
		this.uses.add(use);
		if (before.state !== "approved") this.add(record, "failed", "EVIDENCE_INVALID", `it was used while it was ${before.state}: ${before.reason}`);
		else if (vote.use !== null || request.digestVersion !== 1) this.add(record, "failed", "STATE_VIOLATION", "the use has another form");
		else this.checkAccount(record, found, before.validApprovals);
	}
	/** Compare what a record says about its action, its people and their statements with what they signed. */
	checkAccount(record, found, approvals, own = "") {
		const authority = record.content.get("authority");
		const whole = authority.get("chain");
		if (!Array.isArray(whole) || !authority.has("approver")) throw new Error("it lacks keys of its kind");
		const chain = own ? whole.slice(0, -1) : whole;
		const signed = /* @__PURE__ */ new Map();
		for (const vote of approvals) if (vote.statement !== null) signed.set(canonicalContent(statementFields$1(vote.statement)), vote);
		const basedOn = chain.map((statement) => signed.get(canonicalContent(statement)) ?? null);
		const people = own || basedOn.flatMap((vote) => vote === null ? [] : [String(vote.approver)]).join(", ");
		let words;
		if (at(record.content, "outcome", "result", "digest") !== found.request.digest) words = "it names another action than its request";
		else if (basedOn.includes(null) || !people) words = "its statements are not those of the approvals before it";
		else if (authority.get("approver") !== people) words = `it names others than ${people}, who signed`;
		else return;
		this.add(record, "failed", "EVIDENCE_INVALID", words);
	}
	/** Warn of a digest that leaves out arguments which Aver does not know as descriptive. */
	checkLeftOut(record, request) {
		if (request.digestVersion === 1 || blobDigest(request, "beside") !== null) return;
		const [action, beside] = [request.content.get("action"), request.content.get("beside")];
		const leftOut = isObject(beside) ? beside.get("arguments") : void 0;
		if (!isObject(beside) || !isObject(leftOut) || !hasScopeOf(request, beside)) {
			this.add(record, "failed", "EVIDENCE_INVALID", "it lacks what its digest leaves out, or is of another session");
			return;
		}
		const tool = isObject(action) ? action.get("tool") : void 0;
		if (typeof tool !== "string") return;
		const known = listArguments(tools_default.descriptive, tool);
		const more = [...leftOut.keys()].filter((name) => !known.includes(name));
		if (more.length) this.add(record, "warning", "EVIDENCE_INVALID", `its digest leaves out ${more.join(", ")}`);
	}
	checkVote(record, found, vote) {
		const { request } = found;
		const { ed25519 } = this.examination.rules;
		const before = computeState(request, found.votes, ed25519, request.opened);
		const problem = voteProblem(request, vote, ed25519) ?? turnProblem(request, vote, before.validApprovals, before.floor);
		if (problem !== null) {
			this.add(record, "failed", CODES[problem[0]] ?? "STATE_VIOLATION", problem[1]);
			return;
		}
		if ([
			"denied",
			"expired",
			"closed",
			"used"
		].includes(before.state)) this.add(record, "failed", "STATE_VIOLATION", `the request had ended before: ${before.state}`);
		const signed = vote.statement?.signatures[0];
		const signature = signed?.passkey?.signature ?? signed?.ed25519 ?? "";
		if (this.signatures.has(signature)) this.add(record, "failed", "REPLAY", "its statement is already in an earlier record");
		this.signatures.add(signature);
		this.checkAccount(record, found, before.validApprovals, String(vote.approver));
		const approver = request.approvers.get(String(vote.approver));
		const { key, identity } = approver;
		if (!this.isKnown(approver)) this.add(record, "not_checked", "UNKNOWN_SIGNER", this.unknownWords(approver));
		else {
			const foreign = this.roleProblem(record, approver);
			if (foreign !== null) this.add(record, "failed", "ROLE_POLICY_VIOLATION", foreign);
		}
		const end = [this.roster.ended.get(key.fingerprint), this.retired.get(wholeKey(key))].filter((end) => end !== void 0 && end !== "").sort()[0];
		if (end !== void 0 && (vote.at > end || this.newest > end)) this.add(record, "failed", "KEY_RETIRED", `the key ${key.fingerprint} of ${identity} had ended at ${end}`);
		if (vote.word !== "approve") return;
		if (request.statement === 1) this.add(record, "warning", "UNBOUND_STATEMENT", `${identity} signed no ledger, tenant or request`);
		const enrolled = this.enrolled.get(approverKey(approver));
		const custodies = [
			approver.custody,
			vote.custody,
			enrolled?.custody
		];
		const isWeakPasskey = custodies.includes("passkey") && (enrolled === void 0 || !isIndependent(enrolled));
		if (custodies.includes("file") || isWeakPasskey) {
			const why = isWeakPasskey ? "no key under a passphrase or in ssh-agent endorsed the passkey" : "the key is kept in a plain file";
			this.add(record, "warning", "NOT_INDEPENDENT", `${identity}: the approver was not independent: ${why}`);
		}
	}
	add(record, status, code, words) {
		this.tally.add({
			check: CHECK$4,
			status,
			code,
			words: makePrintable(words),
			place: placeOf(record)
		});
	}
};
// src/verify/key_history.ts
/**
* The history of keys: what an intact `keys` chain says about the keys that sealed a ledger. The twin of
* `aver.ledger.key_history`, whose text explains which records count and why.
*/
var NO_HISTORY = {
	retired: /* @__PURE__ */ new Map(),
	roles: /* @__PURE__ */ new Map(),
	began: /* @__PURE__ */ new Map()
};
/** These rules for a ledger with this history. */
function rulesOf(history, rules) {
	const { retired, roles, began } = history;
	return {
		...rules,
		retired,
		roles,
		recorded: new Set(roles.keys()),
		began
	};
}
/** The retired keys that a ring knows, each limited by the time of its retirement. */
function retirementsByTime(ring, ed25519) {
	return new Map([...ring.retirementTimes(ed25519)].map(([key, retiredAt]) => [key, {
		retiredAt,
		limits: null
	}]));
}
/** Reads the history in the records of a `keys` chain, given in their order. */
var HistoryReader = class {
	found = [];
	/** `identity` names the ledger and tenant that the chain must belong to. */
	constructor(ring, ed25519, identity) {
		this.ring = ring;
		this.rules = plainRules(ring, ed25519);
		this.whole = new ChainJudge({
			...this.rules,
			level: "content"
		}, { identity: {
			...identity,
			name: KEYS_CHAIN
		} });
	}
	take(record) {
		this.whole.judge(record);
		const judge = new ChainJudge(this.rules, {
			chain: KEYS_CHAIN,
			start: null
		});
		judge.judge(record);
		if (!judge.tally.hasFailed() && judge.signer !== null) {
			const read = readKeyRecord(record, judge.signer, this.rules);
			if (read !== null) this.found.push(read);
		}
	}
	async finish(loadBlob) {
		const { found, ring, rules } = this;
		const successors = /* @__PURE__ */ new Map();
		for (const { rotation } of found) if (rotation) successors.set(rotation.old.ed25519, rotation.new.ed25519);
		const roles = /* @__PURE__ */ new Map();
		for (const each of [...found, ...found]) if (recordsKey(each, ring, roles, successors) && !roles.has(each.key.ed25519)) roles.set(each.key.ed25519, each.role);
		const ends = [];
		const began = /* @__PURE__ */ new Map();
		for (const each of found) {
			const ended = endedKey(each, roles, successors);
			const heads = ended === null ? null : await readHeads(each.heads, loadBlob);
			if (ended === null || heads === null) continue;
			ends.push({
				key: ended,
				sequence: each.sequence,
				heads,
				at: each.at
			});
			if (each.rotation !== null && !began.has(each.key.ed25519)) {
				const own = new Map([...heads].filter(([chain]) => !chain.startsWith(`${IMPORT_DOMAIN}.`)));
				began.set(each.key.ed25519, own);
			}
		}
		const isIntact = !this.whole.tally.hasFailed();
		return {
			retired: retirements(ring, rules.ed25519, ends),
			roles: isIntact ? roles : /* @__PURE__ */ new Map(),
			began
		};
	}
};
function text$1(value) {
	if (value === void 0) throw new BadInput("a key is missing");
	return typeof value === "string" ? value : value instanceof JsonNumber ? value.text : String(value);
}
function readKeyRecord(record, signer, rules) {
	try {
		const content = record.content;
		const kind = readKind(content);
		const result = at(content, "outcome", "result");
		if (![
			"key.create",
			"key.rotate",
			"key.retire"
		].includes(kind)) return null;
		if (!isObject(result) || !result.has("public_key_pq")) return null;
		const key = new PublicKey(result.get("public_key"), result.get("public_key_pq"));
		const role = new KeyRole(text$1(result.get("identity")), text$1(result.get("purpose")), key.algorithm);
		const known = rules.ring.entryOf(key);
		if (known !== null && (known.identity !== role.identity || known.purpose !== role.purpose)) return null;
		let rotation = null;
		if (kind === "key.rotate") {
			rotation = readFirstRotation(content, rules);
			if (rotation === null || rotation.new.ed25519 !== key.ed25519 || rotation.identity !== role.identity) return null;
		}
		const when = rotation === null ? text$1(readBlock(content)?.get("at")) : rotation.at;
		return {
			kind,
			signer,
			key,
			role,
			sequence: content.get("sequence").value,
			at: when,
			rotation,
			heads: result.get("heads")
		};
	} catch (error) {
		if (error instanceof BadInput) return null;
		throw error;
	}
}
function readFirstRotation(content, rules) {
	const statements = at(content, "authority", "chain");
	if (!Array.isArray(statements) || !statements.length) return null;
	return readRotation(readStatement(statements[0]), rules.ed25519);
}
/** Whether this record rightly says that its key came into use. */
function recordsKey(record, ring, roles, successors) {
	if (record.kind === "key.retire") return false;
	if (follows(record.signer.ed25519, record.key.ed25519, successors)) return true;
	return (record.rotation !== null || ring.entryOf(record.key) !== null) && isSealedForAnother(record, roles);
}
/** The key that this record rightly ends; null if it ends none. */
function endedKey(record, roles, successors) {
	const signer = record.signer.ed25519;
	if (record.rotation !== null) return follows(signer, record.rotation.new.ed25519, successors) || isSealedForAnother(record, roles) ? record.rotation.old.ed25519 : null;
	if (record.kind !== "key.retire" || signer === record.key.ed25519) return null;
	const sealer = roles.get(signer);
	if (sealer === void 0 || !roles.has(record.key.ed25519)) return null;
	return sealer.identity === "ledger" || sealer.identity === record.role.identity ? record.key.ed25519 : null;
}
function isSealedForAnother(record, roles) {
	return roles.get(record.signer.ed25519)?.identity === "ledger" && record.role.identity !== "ledger";
}
/** The count of every chain; null if they cannot be read. */
async function readHeads(value, loadBlob) {
	try {
		let heads = value;
		for (const { digest } of blobReferences(value)) heads = readJson(await loadBlob(digest));
		if (!isObject(heads)) return null;
		const counts = /* @__PURE__ */ new Map();
		for (const [chain, head] of heads) {
			if (!isObject(head) || !head.has("hash")) return null;
			const count = readInteger(head.get("count"));
			if (count === null) return null;
			counts.set(chain, count);
		}
		return counts;
	} catch (error) {
		if (error instanceof BadInput) return null;
		throw error;
	}
}
/** An integer as Python's `int` reads it from a JSON value; null if it is none. */
function readInteger(value) {
	if (value instanceof JsonNumber) return toCount(BigInt(value.isInteger ? value.text : Math.trunc(value.value)));
	if (typeof value === "boolean") return Number(value);
	if (typeof value !== "string" || !/^\s*[-+]?[0-9](?:_?[0-9]){0,4299}\s*$/.test(value)) return null;
	return toCount(BigInt(value.replace(/[+_]/g, "")));
}
/** Whether the signer is this key, or one that rotations lead to from it. */
function follows(signer, key, successors) {
	const seen = /* @__PURE__ */ new Set();
	while (key !== signer) {
		seen.add(key);
		const next = successors.get(key);
		if (next === void 0 || seen.has(next)) return false;
		key = next;
	}
	return true;
}
function retirements(ring, ed25519, ends) {
	const found = retirementsByTime(ring, ed25519);
	for (const end of ends) {
		const known = found.get(end.key) ?? {
			retiredAt: end.at,
			limits: null
		};
		if (known.limits !== null) continue;
		found.set(end.key, {
			retiredAt: known.retiredAt,
			limits: new Map(end.heads).set(KEYS_CHAIN, end.sequence)
		});
	}
	return found;
}
/** Whether a record of the `keys` or `meta` chain holds by itself, and its signer is known and the one it names. */
function isValidByItself(record, rules) {
	const judge = new ChainJudge({ ...plainRules(rules.ring, rules.ed25519) }, { start: null });
	judge.judge(record);
	return judge.tally.findings.every(({ code }) => code === "UNKNOWN_SIGNER") && judge.signer !== null && judge.signer.fingerprint === record.signed_by;
}
/**
* The rotation that a record of `keys` records: [new key, old key]. Both have signed it, so neither need be known, and no
* stranger can lead to another's key.
*/
function readReplacement(record, rules) {
	try {
		if (record.kind !== "key.rotate") return null;
		const rotation = readFirstRotation(record.content, rules);
		return rotation === null ? null : [rotation.new.ed25519, rotation.old.ed25519];
	} catch (error) {
		if (error instanceof BadInput) return null;
		throw error;
	}
}
/** Turn the signers that the `keys` chain does not record, and no trace vouches for, into a warning each. */
function reportUnrecorded(tally) {
	const missing = /* @__PURE__ */ new Map();
	for (const [signer, where] of tally.unrecorded) {
		const key = signer.slice(0, 64);
		if (!tally.vouched.has(signer) && !missing.has(key)) missing.set(key, where);
	}
	for (const [key, where] of missing) {
		const seat = [where.chain && `chain ${where.chain}`, where.sequence !== null && `sequence ${where.sequence}`];
		const words = `no intact keys chain records that the key ${key.slice(0, 16)} came into use before it sealed ${seat.filter(Boolean).join(", ")}`;
		tally.warn("keys", "KEY_UNRECORDED", words, place());
	}
	tally.unrecorded = /* @__PURE__ */ new Map();
}
// src/verify/sealed.ts
/** A sealed record: the exact text that was hashed, and the seal over it. The twin of `aver.capsule.sealed`. */
var SEAL_KEYS = [
	"hash",
	"signature",
	"signature_pq",
	"signed_at",
	"signed_by"
];
/** Longest field of a seal. An ML-DSA-65 signature, the longest there is, has 6,618 hex digits. */
var SEAL_TEXT_MAX = 16384;
/** A record as it is stored. Anyone may have written any part of it. */
var Sealed = class {
	/** The chain that it was read from. */
	chain = null;
	parsed = void 0;
	hasCanonicalForm = false;
	digest = void 0;
	constructor(canonical, seal, chain = null) {
		this.canonical = canonical;
		this.hash = seal.hash;
		this.signature = seal.signature;
		this.signature_pq = seal.signature_pq;
		this.signed_at = seal.signed_at;
		this.signed_by = seal.signed_by;
		this.chain = chain;
	}
	/** Take the hash that another thread computed from the same text. */
	adoptHash(digest) {
		this.digest ??= digest;
	}
	/** SHA3-256 of the text. Only for one that is well formed: another has no bytes. */
	get computedHash() {
		this.digest ??= sha3Hex(encoder.encode(this.canonical));
		return this.digest;
	}
	/** The content as the strict reader gives it, parsed once. Raises `Unreadable`. */
	get value() {
		if (this.parsed === void 0) {
			if (!this.canonical.isWellFormed()) throw new Unreadable("not UTF-8");
			const { value, isCanonical } = readWithForm(this.canonical, canonicalNumber);
			this.parsed = value;
			this.hasCanonicalForm = isCanonical;
		}
		return this.parsed;
	}
	/** Whether the text is the canonical form of its value. Raises `Unreadable`. */
	get isCanonical() {
		this.value;
		return this.hasCanonicalForm;
	}
	/** The content. Raises `BadInput` if it is not a JSON object. */
	get content() {
		const value = this.value;
		if (!isObject(value)) throw new BadInput("the sealed bytes are not a JSON object");
		return value;
	}
	get kind() {
		return readKind(this.content);
	}
	/** The id that the content names. */
	get id() {
		const id = this.content.get("id");
		return typeof id === "string" ? id : String(id);
	}
};
/** Read a capsule with its seal from the JSON of one object. Takes the form that has the stored hash. */
function sealedFromJson(data) {
	const { parted, forms } = splitOffKeys(data, SEAL_KEYS);
	const texts = forms();
	const first = texts.next().value;
	const seal = readSeal(parted, (key) => new BadInput(`${key} must be a string`));
	const sealed = new Sealed(first, seal);
	for (let found = sealed;;) {
		if (found.computedHash === found.hash) return found;
		const next = texts.next();
		if (next.done) return sealed;
		found = new Sealed(next.value, seal);
	}
}
/** The parts of a seal in an object; a part that is missing or null is empty. */
function readSeal(entry, wrongType) {
	const seal = {
		hash: "",
		signature: "",
		signature_pq: "",
		signed_at: "",
		signed_by: ""
	};
	for (const key of SEAL_KEYS) {
		const value = entry.get(key) ?? "";
		if (typeof value !== "string") throw wrongType(key);
		seal[key] = value;
	}
	return seal;
}
/** Return the record. Raises `Unreadable` if a field of its seal is far too long or not printable. */
function checkSealFields(sealed) {
	for (const key of SEAL_KEYS) {
		const { length } = sealed[key];
		if (length > SEAL_TEXT_MAX && codePoints(sealed[key]) > SEAL_TEXT_MAX || !isPrintable(sealed[key])) throw new Unreadable(`its ${key} cannot be part of a seal`);
	}
	return sealed;
}
// src/verify/bytes.ts
/**
* Where bytes come from. A file of the browser, a file on disk, an answer of a server and bytes in memory all offer the
* same two interfaces, so that the verifier is the same behind every door.
*/
var CHUNK = 262144;
/** All bytes of a source in pieces. */
async function* readChunks(source) {
	for (let at = 0; at < source.size; at += CHUNK) {
		const chunk = await source.read(at, Math.min(at + CHUNK, source.size));
		if (chunk.length === 0) return;
		yield chunk;
	}
}
/** The first bytes of a source, at most `limit`. */
async function readStart(source, limit) {
	return source.read(0, Math.min(limit, source.size));
}
/** Bytes in memory. */
var MemorySource = class {
	constructor(bytes) {
		this.bytes = bytes;
	}
	get size() {
		return this.bytes.length;
	}
	async read(start, end) {
		return this.bytes.subarray(start, end);
	}
};
/** Bytes that a file is asked for at a time. An answer takes a browser a millisecond, however short it is. */
var BLOCK$1 = 1048576;
/** Blocks that are kept, for all files together: a bundle may have thousands of files. */
var BLOCKS_KEPT = 4;
var blocks = /* @__PURE__ */ new Map();
/** A file that is read in blocks, so that short readings one after the other cost little. */
var BlockSource = class {
	async read(start, end) {
		let block = blocks.get(this);
		if (block === void 0 || start < block.start || Math.min(end, this.size) > block.start + block.bytes.length) {
			block = {
				start,
				bytes: await this.load(start, Math.max(end, start + BLOCK$1))
			};
			blocks.delete(this);
			if (block.bytes.length <= BLOCK$1) blocks.set(this, block);
			if (blocks.size > BLOCKS_KEPT) blocks.delete(blocks.keys().next().value);
		}
		return block.bytes.subarray(start - block.start, end - block.start);
	}
};
/** Files by their paths inside one directory, `name` or `directory/name`. */
var FileMap = class {
	constructor(name, files) {
		this.name = name;
		this.files = files;
	}
	async list(inside) {
		if (inside !== void 0 && this.files.has(inside)) return null;
		const prefix = inside === void 0 ? "" : `${inside}/`;
		const names = /* @__PURE__ */ new Set();
		for (const path of this.files.keys()) if (path.startsWith(prefix)) names.add(path.slice(prefix.length).split("/", 1)[0]);
		return [...names];
	}
	async open(...names) {
		const found = this.files.get(names.join("/"));
		if (found === void 0) throw new NotFound(`there is no ${names.join("/")}`);
		return found;
	}
};
var LINE_FEED = 10;
/** Reads lines from a source, each with its line feed, as a file of Python gives them. */
var LineReader = class {
	/** The place of the next byte. */
	place = 0;
	window = /* @__PURE__ */ new Uint8Array();
	start = 0;
	constructor(source, place = 0) {
		this.source = source;
		this.place = place;
	}
	/** The next line, cut after `limit` bytes; null at the end. */
	async readLine(limit) {
		let searched = 0;
		for (;;) {
			const left = this.window.length - this.start;
			const feed = this.window.indexOf(LINE_FEED, this.start + searched);
			if (feed >= 0 && feed - this.start < limit) return this.take(feed + 1 - this.start);
			if (left >= limit) return this.take(limit);
			searched = left;
			if (!await this.fill()) return left ? this.take(left) : null;
		}
	}
	/** Go to the first byte that is not white space. Returns the number of line feeds that were skipped. */
	async skipBlanks() {
		let feeds = 0;
		for (;;) {
			while (this.start < this.window.length) {
				const byte = this.window[this.start];
				if (byte !== 32 && byte !== 9 && byte !== 10 && byte !== 13) return feeds;
				if (byte === LINE_FEED) feeds++;
				this.start++;
				this.place++;
			}
			if (!await this.fill()) return feeds;
		}
	}
	/** The rest of the source, at most `limit` bytes. */
	async readRest(limit) {
		while (this.window.length - this.start < limit && await this.fill());
		return this.take(Math.min(limit, this.window.length - this.start));
	}
	take(size) {
		const taken = this.window.subarray(this.start, this.start + size);
		this.start += size;
		this.place += size;
		return taken;
	}
	async fill() {
		const from = this.place + this.window.length - this.start;
		if (from >= this.source.size) return false;
		const more = await this.source.read(from, Math.min(from + Math.max(CHUNK, this.window.length - this.start), this.source.size));
		if (more.length === 0) return false;
		const kept = this.window.subarray(this.start);
		const window = new Uint8Array(kept.length + more.length);
		window.set(kept);
		window.set(more, kept.length);
		this.window = window;
		this.start = 0;
		return true;
	}
};
/** Whether two texts have the same bytes. By index: `every` takes twenty times as long. */
function areSameBytes(one, other) {
	let at = 0;
	while (at < one.length && one[at] === other[at]) at++;
	return at === one.length && at === other.length;
}
// src/verify/elements.ts
/** Characters of a stream kept at a time, as long as each value ends within them. */
var WINDOW_CHARS = 65536;
/** A window over chunks of text, refilled only when a value does not end inside it. */
var TextWindow = class {
	text = "";
	at = 0;
	isDone = false;
	decoder = new TextDecoder("utf-8", {
		fatal: true,
		ignoreBOM: true
	});
	/** How many characters the window should have after the next filling. */
	get wanted() {
		return Math.min(Math.max(2 * (this.text.length - this.at), WINDOW_CHARS), ELEMENT_MAX + WINDOW_CHARS);
	}
	add(chunk) {
		let more;
		try {
			more = chunk === null ? this.decoder.decode() : this.decoder.decode(chunk, { stream: true });
		} catch {
			throw new Unreadable("not UTF-8");
		}
		this.text = this.text.slice(this.at) + more;
		this.at = 0;
		if (chunk === null) this.isDone = true;
	}
};
/** The texts of the elements of an array: within the limits, but not parsed. */
function* readArrayTexts(window) {
	yield* expect(window, "[");
	if ((yield* peek(window)) === "]") {
		window.at++;
		return;
	}
	for (;;) {
		yield yield* readValue(window);
		if ((yield* peek(window)) === ",") window.at++;
		else {
			yield* expect(window, "]");
			return;
		}
	}
}
function* readTopArrayTexts(window) {
	yield* readArrayTexts(window);
	yield* end(window);
}
function* readTopArray(window) {
	for (const steps = readTopArrayTexts(window);;) {
		const step = steps.next();
		if (step.done) return;
		yield step.value === void 0 ? void 0 : {
			text: step.value,
			value: parseBounded(step.value)
		};
	}
}
/** The elements of the array under `key` of an object, then its other members. */
function* readObjectWithArray(window, key) {
	const others = /* @__PURE__ */ new Map();
	const seen = /* @__PURE__ */ new Set();
	let size = 0;
	let tokens = 0;
	yield* expect(window, "{");
	if ((yield* peek(window)) === "}") window.at++;
	else for (;;) {
		const name = parseBounded(yield* readValue(window));
		if (typeof name !== "string") throw new Unreadable("an object key is not a string");
		if (seen.has(name)) throw new DuplicateKey(`the key ${JSON.stringify(name.slice(0, 80))} occurs twice in one object`);
		seen.add(name);
		yield* expect(window, ":");
		if (name === key) for (const steps = readArrayTexts(window);;) {
			const step = steps.next();
			if (step.done) break;
			yield step.value === void 0 ? void 0 : {
				text: step.value,
				value: parseBounded(step.value)
			};
		}
		else {
			const text = yield* readValue(window);
			size += name.length + text.length;
			tokens += 1 + countTokens(text);
			if (size > 16777216 || tokens > 1e6) throw new Unreadable(`the members beside '${key}' have more than ${ELEMENT_MAX} bytes or ${TOKENS_MAX} values`);
			others.set(name, parseBounded(text));
		}
		if ((yield* peek(window)) === ",") window.at++;
		else {
			yield* expect(window, "}");
			break;
		}
	}
	if (!seen.has(key)) throw new Unreadable(`has no '${key}'`);
	yield { others };
	yield* end(window);
}
/** The next character that is not white space; empty at the end. */
function* peek(window) {
	for (;;) {
		window.at = skipSpace(window.text, window.at);
		if (window.at < window.text.length) return window.text[window.at];
		if (window.isDone) return "";
		yield void 0;
	}
}
function* expect(window, character) {
	const found = yield* peek(window);
	if (found !== character) throw new Unreadable(`expected '${character}', found '${found || "the end"}'`);
	window.at++;
}
function* end(window) {
	if (yield* peek(window)) throw new Unreadable("something follows the end of the document");
}
/** The text of the next value, within all bounds. */
function* readValue(window) {
	if (!(yield* peek(window))) throw new Unreadable("the document ends early");
	let found = findValueEnd(window.text, window.at);
	while (found === null) {
		if (byteLength(window.text.slice(window.at)) > 16777216) throw new Unreadable(`an element is larger than ${ELEMENT_MAX} bytes`);
		if (window.isDone) throw new Unreadable("the document ends early");
		yield void 0;
		found = findValueEnd(window.text, window.at);
	}
	const text = window.text.slice(window.at, found);
	if (isTooLarge(text)) throw new Unreadable(`an element is larger than ${ELEMENT_MAX} bytes`);
	checkTokenCount(text);
	window.at = found;
	return text;
}
async function* readBatches(source, read) {
	const window = new TextWindow();
	const steps = read(window);
	const chunks = readChunks(source);
	let items = [];
	try {
		for (;;) {
			const step = steps.next();
			if (step.done) break;
			if (step.value !== void 0) {
				items.push(step.value);
				continue;
			}
			if (items.length) {
				yield {
					items,
					error: null
				};
				items = [];
			}
			for (const wanted = window.wanted; !window.isDone && window.text.length - window.at < wanted;) {
				const chunk = await chunks.next();
				window.add(chunk.done ? null : chunk.value);
			}
		}
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		yield {
			items,
			error
		};
		return;
	}
	if (items.length) yield {
		items,
		error: null
	};
}
/** Stream the elements of an array, parsed. */
function readElements(source) {
	return readBatches(source, readTopArray);
}
/** Stream the texts of the elements of an array. They may not be valid JSON. */
function readElementTexts(source) {
	return readBatches(source, readTopArrayTexts);
}
/** Stream the elements of the array under a key of an object, and at last the object's other members. */
function readMemberElements(source, key) {
	return readBatches(source, (window) => readObjectWithArray(window, key));
}
// src/verify/bundle/layout.ts
var INDEX = "index.json";
var META = "meta.json";
var HEAD$1 = "head.json";
var BLOBS = "blobs";
var RESERVED_IDS = /* @__PURE__ */ new Set([
	"head",
	"index",
	"meta"
]);
/** Bytes that the file of a chain has at least, if a tool wrote it. */
var SHORTEST_CHAIN = 1200;
/** Most chains that an index may list without their files. With more, the index is not read. */
var ABSENT_MAX = 1e3;
/** How many unknown keys of an index or a summary are noted. */
var UNKNOWN_KEPT = 10;
/** Most characters of a name or hash in an index. */
var CLAIM_TEXT_MAX = 256;
var INDEX_KEYS = /* @__PURE__ */ new Set([...[
	"generated_at",
	"public_key",
	"fingerprint",
	"keys",
	"pq_keys",
	"chain_count",
	"capsule_count"
], ...[
	"meta",
	"chains",
	"ledger",
	"tenant",
	"part",
	"blobs",
	"unfinished",
	"files"
]]);
var SUMMARY_KEYS = /* @__PURE__ */ new Set([...[
	"id",
	"tool",
	"title",
	"length",
	"head_hash",
	"genesis_hash",
	"origin"
], ...[
	"all_hashes_ok",
	"signed_by",
	"started_at",
	"ended_at",
	"db_path"
]]);
var RECORD_KEYS = /* @__PURE__ */ new Set([...SEAL_KEYS, "canonical"]);
/** `<tool>.<session>`, Aver's form of a chain's name, also for the public tool's `<tool>-<session>`. */
function claimedName({ id, tool }) {
	return tool && id.startsWith(`${tool}-`) ? `${tool}.${id.slice(tool.length + 1)}` : id;
}
function fileOf(claim) {
	return `${claim.id}.json`;
}
/** Return a name that a file may have here; `Unreadable` for any other value. */
function checkFileName(name) {
	if (!isFileName(name)) throw new Unreadable(`${show(name)} is not a name that a file may have here`);
	return name;
}
/** Read and check an index. Raises `Unreadable` if it is not valid. */
async function readIndex(directory) {
	const data = readJson(await readStart(await directory.open(INDEX), ELEMENT_MAX + 1));
	const listed = isObject(data) ? data.get("chains") : null;
	if (!isObject(data) || !Array.isArray(listed)) throw new Unreadable("an index is an object that lists chains");
	const here = Math.min((await directory.list()).length, listed.length);
	if (listed.length - here > ABSENT_MAX) throw new Unreadable(`it lists ${listed.length} chains, and ${here} files are here: the rest was not read`);
	const chains = /* @__PURE__ */ new Map();
	const names = /* @__PURE__ */ new Set();
	listed.forEach((summary, at) => {
		const claim = readClaim(summary, `chains[${at}]`);
		if (RESERVED_IDS.has(claim.id.toLowerCase())) throw new Unreadable(`a chain cannot have the id '${claim.id}'`);
		if (chains.has(claim.id)) throw new Unreadable("two chains have the same id");
		if (names.has(claimedName(claim))) throw new Unreadable("two chains have the same name");
		chains.set(claim.id, claim);
		names.add(claimedName(claim));
	});
	const shared = await directory.findSharedFiles?.(/* @__PURE__ */ new Set([
		INDEX,
		META,
		HEAD$1,
		...[...chains.values()].map(fileOf)
	]));
	if (shared) throw new Unreadable(`${shared[0]} and ${shared[1]} are two names of one file; each part of a bundle has a file of its own`);
	const meta = data.get("meta") ?? null;
	const files = data.has("files") ? data.get("files") : [];
	if (meta !== null && !isObject(meta)) throw new Unreadable("meta must be an object");
	if (!Array.isArray(files)) throw new Unreadable("files must be a list");
	const claimOfMeta = meta === null ? null : readClaim(new Map([
		...meta,
		["id", "meta"],
		["origin", null]
	]), "meta");
	files.forEach(checkFileName);
	return {
		chains: [...chains.values()],
		meta: claimOfMeta,
		chainCount: requireCount(data, "chain_count"),
		capsuleCount: requireCount(data, "capsule_count"),
		ledger: requireText(data, "ledger"),
		tenant: requireText(data, "tenant"),
		isPart: requireFlag(data, "part"),
		areBlobsLeftOut: data.get("blobs") === null,
		blobs: requireCount(data, "blobs"),
		publicKey: requireText(data, "public_key"),
		fingerprint: requireText(data, "fingerprint"),
		keys: requireTexts(data, "keys"),
		pqKeys: requireTexts(data, "pq_keys"),
		isUnfinished: requireFlag(data, "unfinished"),
		unknown: unknownKeys(data, INDEX_KEYS)
	};
}
function unknownKeys(data, known) {
	return sortTexts([...data.keys()].filter((key) => !known.has(key))).slice(0, UNKNOWN_KEPT);
}
/** Read a chain's summary in an index, or a chain file's `own` one, which need not name its chain. */
function readClaim(summary, where, { own = false } = {}) {
	if (!isObject(summary)) throw new Unreadable(`${where} must be an object`);
	const id = summary.get("id");
	if (!(own && id === "")) {
		checkFileName(id);
		checkFileName(`${id}.json`);
	}
	const text = (key) => requireText(summary, key, `${where}.`);
	const plain = (key) => {
		const value = summary.get(key) ?? null;
		if (value !== null && typeof value !== "string") throw new Unreadable(`${where}.${key} must be a text`);
		return value;
	};
	const claim = {
		id,
		tool: text("tool") ?? "",
		length: requireCount(summary, "length", `${where}.`),
		headHash: text("head_hash"),
		genesisHash: text("genesis_hash"),
		origin: text("origin"),
		title: plain("title"),
		startedAt: plain("started_at"),
		endedAt: plain("ended_at"),
		dbPath: plain("db_path"),
		signedBy: null,
		allHashesOk: null,
		unknown: unknownKeys(summary, SUMMARY_KEYS)
	};
	const signers = summary.get("signed_by") ?? null;
	if (signers !== null && !(Array.isArray(signers) && signers.every((name) => typeof name === "string"))) throw new Unreadable(`${where}.signed_by must be a list of texts`);
	const ok = summary.get("all_hashes_ok") ?? null;
	if (ok !== null && typeof ok !== "boolean") throw new Unreadable(`${where}.all_hashes_ok must be true or false`);
	return {
		...claim,
		signedBy: signers,
		allHashesOk: ok
	};
}
/** Reads a flag that may be left out. Another reader may take 1 or "no" for true. */
function requireFlag(data, key) {
	const value = data.has(key) ? data.get(key) : false;
	if (typeof value !== "boolean") throw new Unreadable(`${key} must be true or false`);
	return value;
}
function requireCount(data, key, where = "") {
	const value = data.get(key) ?? null;
	if (value === null) return null;
	if (!isInteger(value) || value.value < 0) throw new Unreadable(`${where}${key} must be a count`);
	return value.value + 0;
}
function requireText(data, key, where = "") {
	const value = data.get(key) ?? null;
	if (value === null) return null;
	if (typeof value !== "string" || !isPrintable(value) || codePoints(value) > CLAIM_TEXT_MAX) throw new Unreadable(`${where}${key} must be a short text`);
	return value;
}
function requireTexts(data, key) {
	const value = data.get(key) ?? null;
	if (value === null) return null;
	if (!isObject(value) || ![...value.values()].every((item) => typeof item === "string")) throw new Unreadable(`${key} must be an object of texts`);
	return value;
}
function isRecordSource(source) {
	return "entries" in source;
}
/** Read records that a server gave. There is no file, and so no claim of its own. */
async function* readEntries(source, unknown) {
	let number = -1;
	for await (const entries of source.entries()) yield entries.map((entry) => {
		number++;
		try {
			if (entry instanceof BadInput) return entry;
			const record = readBundleRecord(entry);
			if (unknown !== null) noteUnknownMembers(entry, number, unknown);
			return record;
		} catch (problem) {
			if (!(problem instanceof BadInput)) throw problem;
			return problem;
		}
	});
}
/**
* Stream the records of a chain's file, then the file's own claim about the chain.
*
* If the file itself breaks off, the last item is the error, and there is no claim. `unknown` gets the members of records
* that Aver does not write, each with the number of the first record that has it.
*/
async function* readChainFile(source, unknown = null) {
	if (isRecordSource(source)) {
		yield* readEntries(source, unknown);
		return;
	}
	let number = -1;
	for await (const { items, error } of readMemberElements(source, "capsules")) {
		const found = [];
		let failure = error;
		for (const item of items) {
			if ("others" in item) {
				try {
					found.push({ claim: readClaim(new Map([["id", ""], ...item.others]), "the chain's summary", { own: true }) });
				} catch (problem) {
					if (!(problem instanceof BadInput)) throw problem;
					failure = problem;
					break;
				}
				continue;
			}
			number++;
			try {
				found.push(readBundleRecord(item.value));
			} catch (problem) {
				if (!(problem instanceof BadInput)) throw problem;
				found.push(problem);
				continue;
			}
			if (unknown !== null) noteUnknownMembers(item.value, number, unknown);
		}
		if (failure !== null) found.push(failure);
		yield found;
		if (failure !== null) return;
	}
}
function noteUnknownMembers(entry, number, unknown) {
	for (const key of entry.keys()) if (!RECORD_KEYS.has(key)) {
		const others = sortTexts([...entry.keys()].filter((name) => !RECORD_KEYS.has(name)));
		for (const name of others.slice(0, Math.max(0, UNKNOWN_KEPT - unknown.size))) if (!unknown.has(name)) unknown.set(name, number);
		return;
	}
}
function readBundleRecord(entry) {
	const canonical = isObject(entry) ? entry.get("canonical") : null;
	if (!isObject(entry) || typeof canonical !== "string") throw new Unreadable("a capsule in a bundle is an object with its seal and `canonical`");
	const seal = readSeal(entry, () => new Unreadable("the parts of a seal are strings"));
	if (!canonical.isWellFormed()) throw new Unreadable("`canonical` contains a lone surrogate, which has no bytes");
	return checkSealFields(new Sealed(canonical, seal));
}
var TITLE_SCAN_MAX = 4096;
/** Most signers of a chain that are noted. The signers of a chain with more are not compared with the index. */
var SIGNERS_MAX = 1e3;
var ChainFacts = class {
	count = 0;
	genesisHash = null;
	headHash = null;
	startedAt = null;
	endedAt = null;
	title = "";
	/** The title as the public tool makes it: with addresses and paths. */
	rawTitle = "";
	signers = /* @__PURE__ */ new Set();
	addRecord(record, content) {
		if (this.count === 0) {
			this.genesisHash = record.hash;
			this.startedAt = record.signed_at;
		}
		this.count++;
		this.headHash = record.hash;
		this.endedAt = record.signed_at;
		if (record.signed_by && this.signers.size <= 1e3) this.signers.add(record.signed_by);
		if (this.rawTitle === "" && content !== null) {
			const request = at(content, "trigger", "request");
			this.rawTitle = typeof request === "string" ? firstLine(strip(cutText(request, TITLE_SCAN_MAX))) : "";
			this.title = cleanTitle(this.rawTitle, 90);
		}
	}
	/** Count a record that is no capsule. It has a place in the chain, and no hash. */
	addUnreadable() {
		this.count++;
		this.headHash = null;
	}
};
// src/verify/bundle/index_check.ts
/** Compare the claims of a bundle's index with its chains (check `index`). The twin of `aver.ledger.bundle.index_check`. */
var CHECK$3 = "index";
var NAME_SHOWN = 80;
/** Compare a chain's length and ends with the claims about it. If they differ, either may be wrong. */
function checkChainClaim(claim, facts, source, tally, chain) {
	const { count } = facts;
	const who = source.name;
	if (claim.length !== null && claim.length !== count) {
		const code = claim.length > count ? "TRUNCATED" : "ROLLBACK";
		tally.fail(CHECK$3, code, `${who} claims ${claim.length} records; ${count} are here`, place(chain, Math.min(claim.length, count)));
	} else if (count && claim.headHash !== null && claim.headHash !== facts.headHash) tally.fail(CHECK$3, "ROLLBACK", `${who} claims another last record`, place(chain, count - 1));
	if (count && claim.genesisHash !== null && claim.genesisHash !== facts.genesisHash) tally.fail(CHECK$3, "CHAIN_IDENTITY", `${who} claims another first record`, place(chain, 0));
}
/** Compare the claims that a reader of the index is shown. `allHashesOk` is null if no hash was computed. */
function checkShownClaims(claim, facts, source, tally, where, allHashesOk, name) {
	if (source.isAvers) warnOfKeys(claim.unknown, source.name, tally, where);
	if (facts.count === 0) return;
	const fail = (what, claimed) => {
		tally.fail(CHECK$3, "INDEX_MISMATCH", `${source.name} claims ${what} that the records do not have: ${show(claimed)}`, where);
	};
	if (claim.allHashesOk !== null && allHashesOk !== null && claim.allHashesOk !== allHashesOk) fail("an all_hashes_ok", claim.allHashesOk);
	if (claim.startedAt !== null && claim.startedAt !== facts.startedAt) fail("a time of its first record", claim.startedAt);
	if (claim.endedAt !== null && claim.endedAt !== facts.endedAt) fail("a time of its last record", claim.endedAt);
	if (facts.signers.size <= 1e3) {
		const actual = sortTexts(facts.signers);
		const isSame = claim.signedBy?.length === actual.length && actual.every((one, at) => claim.signedBy?.[at] === one);
		if (claim.signedBy !== null && !isSame) fail("signers", claim.signedBy);
	} else tally.skip(CHECK$3, `a chain has more than ${SIGNERS_MAX} signers, which were not compared`, { matters: true });
	if (source.isAvers && name) {
		if (claim.tool && claim.tool !== splitChainName(name)[0]) fail("a tool", claim.tool);
		if (claim.title !== null && claim.title !== (facts.title || name)) fail("a title", claim.title);
		if (claim.dbPath !== null && claim.dbPath !== "") fail("a path", claim.dbPath);
	}
	if (!source.isAvers && ![
		null,
		facts.title,
		cutText(facts.rawTitle, 90),
		name
	].includes(claim.title)) {
		const words = `${source.name} claims a title that the first request does not have: ${show(claim.title)}`;
		tally.warn(CHECK$3, "INDEX_MISMATCH", words, where);
	}
}
/** Compare where a chain is said to come from with its first record. `origin` is null where it was made here. */
function checkOriginClaim(claim, origin, source, tally, where) {
	if (claim.origin === null || claim.origin === origin) return;
	tally.fail(CHECK$3, "INDEX_MISMATCH", `${source.name} claims an origin that the records do not have: ${show(claim.origin)}`, where);
}
/** Warn of keys that Aver does not write: a reader may show their values, and nothing was compared. */
function warnOfKeys(unknown, who, tally, where) {
	if (!unknown.length) return;
	const listed = unknown.map((key) => show(key)).join(", ");
	tally.warn(CHECK$3, "INDEX_MISMATCH", `${who} has keys that Aver does not know, and which were not compared: ${listed}`, where);
}
/** Warn of members of records that Aver does not write. No signature covers them, and a reader may show them. */
function warnOfMembers(unknown, tally, chain, source = null) {
	if (!unknown.size) return;
	const words = `records have members beside \`canonical\` that Aver does not know, and that nobody signed: ${[...unknown.keys()].map((key) => show(key)).join(", ")}`;
	tally.warn(CHECK$3, "INDEX_MISMATCH", words, place(chain, Math.min(...unknown.values()), source));
}
/** Compare the keys in an Aver ledger's index with each other and with keys that are known or recorded. */
function checkKeyClaims(index, head, signers, ring, recorded, tally) {
	const fail = (words) => tally.fail(CHECK$3, "INDEX_MISMATCH", words, place(null, null, INDEX));
	warnOfKeys(index.unknown, "the index", tally, place(null, null, INDEX));
	const claimed = new Map(index.keys ?? []);
	if (index.publicKey && index.fingerprint !== null) {
		if (!claimed.has(index.fingerprint)) claimed.set(index.fingerprint, index.publicKey);
		if (claimed.get(index.fingerprint) !== index.publicKey) fail("public_key and keys have two keys of one fingerprint");
	}
	if (Boolean(index.publicKey) !== Boolean(index.fingerprint)) fail("public_key and fingerprint are not those of one key");
	for (const [fingerprint, key] of claimed) {
		const known = new Set(ring.lookup(fingerprint).map((one) => one.ed25519));
		const record = recorded.get(fingerprint);
		if (record !== void 0) known.add(record.publicKey);
		if (cutText(key, 16) !== fingerprint || known.size && !known.has(key)) fail(`its key of ${show(fingerprint)} is another than that signer's`);
		else if (!signers.has(fingerprint) && fingerprint !== index.fingerprint) fail(`it lists the key ${show(fingerprint)}, which signed nothing here`);
	}
	for (const [fingerprint, key] of index.pqKeys ?? []) {
		const known = new Set(ring.lookup(fingerprint).map((one) => one.mlDsa).filter(Boolean));
		const record = recorded.get(fingerprint);
		if (record !== void 0) known.add(record.publicKeyPq);
		if (!claimed.has(fingerprint) || known.size && !known.has(key)) fail(`its ML-DSA-65 key of ${show(fingerprint)} is another than that signer's`);
	}
	const signersOfHead = head === null ? [] : head.statement.signatures.map((one) => one.by);
	if (head !== null && index.fingerprint !== null && !signersOfHead.includes(index.fingerprint)) fail(`it claims that the ledger's key is ${show(index.fingerprint)}; another signed ${HEAD$1}`);
	if (head !== null && index.isPart !== head.isPart) fail(`it claims ${index.isPart ? "a part" : "all"} of the ledger, and ${HEAD$1} states otherwise`);
}
/** Warn of files in the directory that the index does not list, and of blobs that no record refers to. */
async function checkUnlistedFiles(directory, index, blobs, known, tally) {
	const listed = /* @__PURE__ */ new Set([
		INDEX,
		HEAD$1,
		...index.chains.map(fileOf),
		...known
	]);
	if (index.meta !== null) listed.add(META);
	const warn = (name, why) => {
		const shown = isPrintable(name) && codePoints(name) <= NAME_SHOWN ? name : show(name, NAME_SHOWN).slice(1);
		tally.warn(CHECK$3, "UNLISTED_FILE", `${shown}: ${why}`, place(null, null, shown));
	};
	for (const name of await directory.list()) {
		const inside = name === "blobs" ? await directory.list(BLOBS) : null;
		if (inside !== null) {
			for (const blob of inside) if (!blobs.has(blob)) warn(`${BLOBS}/${blob}`, "no record refers to it");
		} else if (!listed.has(name)) warn(name, "the index does not list it, and it was not verified");
	}
}
// src/verify/bundle/chain_file.ts
/** The file of one chain: its records and claims as they are read, and the verdict on it alone. */
var UNREADABLE_CODES = /* @__PURE__ */ new Set(["SCHEMA_INVALID", "DUPLICATE_KEY"]);
/** The content of a chain's file. The hash at the place `wanted` is compared with the meta chain's head. */
var JudgedChain = class {
	facts = new ChainFacts();
	atWanted = null;
	ownClaim = null;
	refersToBlobs = false;
	constructor(wanted = -1) {
		this.wanted = wanted;
	}
	/** Judge what a chain's file gives next. Returns the content of a record that could be read. */
	take(item, judge) {
		if (item instanceof Sealed) {
			if (this.facts.count === this.wanted) this.atWanted = item.hash;
			this.refersToBlobs ||= item.canonical.includes(BLOB_REFERENCE);
			const content = judge.judge(item);
			this.facts.addRecord(item, content);
			return content;
		}
		if (item instanceof BadInput) {
			judge.unreadable(item);
			this.facts.addUnreadable();
		} else this.ownClaim = item.claim;
		return null;
	}
	/** Compare the chain with the claims of the index or of its own summary. Wrong claims about what is shown go into `shown`. */
	checkClaim(claim, source, judge, chain, name, shown) {
		const codes = new Set([...judge.tally.counts.values()].map((counted) => counted.code));
		const hashesOk = judge.tally.done.has("content") && ![...UNREADABLE_CODES].some((code) => codes.has(code)) ? !codes.has("HASH_MISMATCH") : null;
		checkChainClaim(claim, this.facts, source, judge.tally, chain);
		checkShownClaims(claim, this.facts, source, shown, place(chain), hashesOk, claim.id || name);
	}
};
/** Judge the first items of a chain's file to learn what its first record says that the chain is. */
async function peekChainIdentity(source, unknown = null) {
	const batches = readChainFile(source, unknown);
	let first = null;
	while (first === null || first.length === 0) {
		const step = await batches.next();
		if (step.done) break;
		first = step.value;
	}
	const item = first?.[0];
	const rest = async function* () {
		if (first !== null) yield first;
		yield* batches;
	};
	return {
		named: readChainIdentity(item instanceof Sealed ? item : null),
		batches: rest()
	};
}
var NO_OWNER = {
	ledger: null,
	tenant: null
};
/** Whose bundle it is, by the first chain that was made there and names its ledger. The index is not believed. */
async function readOwner(directory, index) {
	const own = index.chains.filter((claim) => claim.origin === null || RESERVED_CHAINS.has(claim.id)).map(fileOf);
	const files = index.meta === null ? own : [META, ...own];
	for (const name of files.slice(0, UNREADABLE_MAX)) try {
		const { named } = await peekChainIdentity(await directory.open(name));
		const [ledger, tenant] = [named?.get("ledger"), named?.get("tenant")];
		if (typeof ledger === "string" && typeof tenant === "string") return {
			ledger,
			tenant
		};
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
	}
	return NO_OWNER;
}
/** The verdict on one chain of a bundle, by its file alone. */
async function judgeChainFile(name, file, options) {
	const retired = retirementsByTime(options.ring, options.ed25519);
	const rules = plainRules(options.ring, options.ed25519, {
		retired,
		requirePq: options.requirePq ?? false,
		crew: options.crew ?? null
	});
	const judge = new ChainJudge(rules, { source: name });
	const seen = new JudgedChain();
	const unknown = /* @__PURE__ */ new Map();
	const shown = new Tally();
	const meter = new ProgressMeter(options, file.size);
	const { named, batches } = await peekChainIdentity(file, unknown);
	read: for await (const items of prepareBatches(rules, batches, (found) => found.filter((item) => item instanceof Sealed))) {
		const records = items.filter((item) => item instanceof Sealed);
		for (const item of items) {
			if (judge.stopsReading()) break read;
			seen.take(item, judge);
		}
		meter.add(items.length, records.reduce((sum, record) => sum + record.canonical.length, 0));
	}
	const tally = judge.finish();
	tally.chains = Number(seen.facts.count > 0);
	tally.countDone("index", Number(seen.ownClaim !== null && seen.facts.count > 0));
	const ownName = named?.has("name") ? pythonText(named.get("name")) : "";
	if (seen.ownClaim !== null) {
		seen.checkClaim(seen.ownClaim, {
			name: "its summary",
			isAvers: named !== null
		}, judge, null, ownName, shown);
		checkName(seen.ownClaim, named, tally, name);
	}
	warnOfMembers(unknown, shown, null, name);
	tally.merge(shown);
	tally.skip("meta", "only one chain was verified: it may have been cut at its end", { matters: false });
	skipExaminers(domainOf(ownName), "only one chain was verified", tally);
	if (seen.refersToBlobs) tally.skip("blobs", "only one chain was verified", { matters: false });
	return conclude(`chain in ${name}`, tally, "signature", [...CHECKS, "index"]);
}
/** Hold what a chain's file says it is called to what the chain's first record says. */
function checkName(claim, named, tally, source) {
	if (named === null) {
		tally.skip("identity", "made by other software, which does not name its chain", { matters: false });
		return;
	}
	if (!claim.id) {
		tally.skip("identity", "the file does not say which chain it is", { matters: false });
		return;
	}
	tally.countDone("identity");
	const madeAs = claim.origin || claim.id;
	if (named.get("name") !== madeAs) tally.fail("identity", "CHAIN_IDENTITY", `the file calls it '${madeAs}', its first record another name`, place(null, 0, source));
	else if (madeAs !== claim.id) tally.skip("identity", `that '${madeAs}' was imported as '${claim.id}' rests on the file's summary alone`, { matters: true });
}
// src/verify/joins.ts
/**
* The keys that joined a trace of the protocol. The twin of `aver.protocol.judgement.joined_keys`, whose text has the rules.
*
* A join that the operator sealed stands for the record of a key in the `keys` chain. The page judges nothing else of a
* trace: `aver verify` does.
*/
var PURPOSE = "protocol-join";
var OPENING = "protocol.session_initialized";
var JOINING = "protocol.participant_joined";
var OPERATOR = "operator";
/** The text of each key of a join, but for its version, its keys and its time. */
var FIELDS = {
	ledger: /^[!-~]{1,200}$/,
	tenant: /^[!-~]{1,200}$/,
	chain: /^[!-~]{1,200}$/,
	task_sha256: /^[0-9a-f]{64}$/,
	profile: /^(?:strict|default|lenient)$/,
	role: /^(?:planner|executor|critic|auditor|operator)$/,
	agent: /^(?:operator|agent:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63})$/
};
/** Note in the tally which of the unrecorded signers the traces vouch for. Other traces are not read. */
async function noteJoins(examination, tally) {
	for (const { name, origin } of selectChains(examination, "protocol")) {
		if (![...tally.unrecorded.keys()].some((signer) => signer.endsWith(` ${name}`))) continue;
		const joined = new JoinedKeys(examination, origin);
		for await (const record of examination.reader.read(origin)) joined.take(record);
		for (const key of joined.keys) tally.vouched.add(unrecordedKey(key, name));
	}
}
var JoinedKeys = class {
	keys = /* @__PURE__ */ new Set();
	operator = null;
	constructor(examination, chain) {
		this.examination = examination;
		this.place = [
			examination.ledger,
			examination.tenant,
			chain
		];
	}
	/** Note the joins in the next record, whose content and signature hold. */
	take(record) {
		const { rules } = this.examination;
		const kind = readKind(record.content);
		if (kind !== OPENING && kind !== JOINING) return;
		const given = at(record.content, "authority", "chain");
		const statements = (Array.isArray(given) ? given : []).flatMap((one) => read(() => [readStatement(one)]) ?? []);
		const joins = statements.flatMap((one) => read(() => [this.readJoin(one)]) ?? []);
		const sealer = rules.ring.lookup(record.signed_by).find((key) => key.fingerprint === record.signed_by);
		if (sealer === void 0) return;
		const sequence = record.content.get("sequence");
		if (kind === OPENING && sequence instanceof JsonNumber && sequence.text === "0") {
			if (roleOf(rules, sealer)?.mayAttest ?? true) this.operator = sealer;
		} else if (kind === JOINING && joins.some(({ role, key }) => role === OPERATOR && key.equals(sealer))) {
			if (this.operator !== null && this.leads(statements, this.operator, sealer)) this.operator = sealer;
		}
		if (this.operator === null || !sealer.equals(this.operator)) return;
		for (const { role, key } of joins) if (role !== OPERATOR) this.keys.add(key.ed25519);
	}
	/** Whether rotation statements lead from one key to another. */
	leads(statements, from, to) {
		for (const statement of statements.filter(({ purpose }) => purpose === "rotation")) {
			const rotation = readRotation(statement, this.examination.rules.ed25519);
			if (rotation === null || !rotation.old.equals(from)) return false;
			from = rotation.new;
		}
		return from.equals(to);
	}
	/** A join of this trace that its own key alone signed. Raises `BadInput`. */
	readJoin(statement) {
		if (statement.purpose !== PURPOSE) throw new BadInput("it is no join");
		const content = checkObject(statement.content, PURPOSE, [
			...Object.keys(FIELDS),
			"v",
			"public_key",
			"public_key_pq",
			"at"
		]);
		checkVersion(content.get("v"), PURPOSE);
		for (const [name, pattern] of Object.entries(FIELDS)) textField(content.get(name), name, pattern);
		timeField(content.get("at"), "at");
		const key = new PublicKey(content.get("public_key"), content.get("public_key_pq"));
		const results = checkStatement(statement, new Ring([key]), this.examination.rules.ed25519);
		if (results.length !== 1 || results[0]?.outcome !== "valid") throw new BadInput("it is not signed by its key alone");
		if ([
			"ledger",
			"tenant",
			"chain"
		].some((name, at) => content.get(name) !== this.place[at])) throw new BadInput("it is for another trace");
		return {
			role: content.get("role"),
			key
		};
	}
};
/** What a reader gives; null where it raises `BadInput`. */
function read(reader) {
	try {
		return reader();
	} catch (error) {
		if (error instanceof BadInput) return null;
		throw error;
	}
}
// src/verify/bundle/blobs.ts
/** The blobs of a bundle: every one that a record refers to must have the bytes of its digest. */
var BLOBS_KEPT = 1e5;
/** Bytes of a blob that is read into memory. */
var BLOB_READ_MAX = 67108864;
/** Stand for the size of a blob whose bytes, or whose size, are not those of its reference. */
var OTHER_BYTES = -1;
var OTHER_SIZE = -2;
/** The bytes of a blob in a bundle; `BadInput` if they are not those of its digest. */
async function readBundleBlob(directory, digest) {
	const file = await directory.open(BLOBS, digest);
	if (file.size > BLOB_READ_MAX) throw new NotFound(`the blob ${digest} is larger than ${BLOB_READ_MAX} bytes, and was not read`);
	const data = await file.read(0, file.size);
	if (sha256Hex(data) !== digest) throw new BadInput(`the blob stored as ${digest} has other bytes`);
	return data;
}
/** The blobs that records of a bundle refer to. */
var BundleBlobs = class {
	/** The size of each, and null for one that is not here. */
	sizes = /* @__PURE__ */ new Map();
	constructor(directory, areLeftOut, meter) {
		this.directory = directory;
		this.areLeftOut = areLeftOut;
		this.meter = meter;
	}
	/** The digests of the blobs that are here. */
	get present() {
		return [...this.sizes].flatMap(([digest, size]) => size === null ? [] : [digest]);
	}
	/** Check the blobs that one record refers to. */
	async check(content, chain, sequence, tally) {
		for (const { digest, size } of blobReferences(content)) {
			if (this.areLeftOut) {
				tally.skip("blobs", "the bundle was made without its blobs", { matters: true });
				return;
			}
			tally.countDone("blobs");
			let actual = this.sizes.get(digest);
			if (actual === void 0 || actual === OTHER_SIZE) actual = await this.measure(digest, size);
			if (this.sizes.size < BLOBS_KEPT) this.sizes.set(digest, actual);
			if (actual === null) tally.fail("blobs", "ARTIFACT_MISSING", `the blob ${digest} is not here`, place(chain, sequence));
			else if (String(actual) !== size) tally.fail("blobs", "ARTIFACT_HASH_MISMATCH", `the blob stored as ${digest} has other bytes`, place(chain, sequence));
		}
	}
	/** How many bytes a blob has; `OTHER_SIZE`, `OTHER_BYTES`, or null if there is none. */
	async measure(digest, expected) {
		try {
			const file = await this.directory.open(BLOBS, digest);
			if (String(file.size) !== expected) return OTHER_SIZE;
			const hash = startSha256();
			for await (const chunk of readChunks(file)) {
				hash.update(chunk);
				this.meter.add(0, chunk.length);
			}
			return hash.hex() === digest ? file.size : OTHER_BYTES;
		} catch (error) {
			if (error instanceof BadInput) return null;
			throw error;
		}
	}
	/** Compare the number of blobs with the one in the index. Returns whether all were counted. */
	checkCount(claimed, tally) {
		if (this.sizes.size >= BLOBS_KEPT) {
			tally.skip("index", `more than ${BLOBS_KEPT} blobs were not counted`, { matters: true });
			return false;
		}
		const here = this.present.length;
		if (claimed !== null && claimed !== here) {
			const words = `the index counts ${claimed} blobs; records refer to ${here} that are here`;
			tally.fail("index", "INDEX_MISMATCH", words, place(null, null, INDEX));
		}
		return true;
	}
};
// src/verify/documents.ts
/**
* JSON documents as Aver writes them, byte for byte. The twin of `aver.capsule.json_document`.
*
* A signature covers a document's content, not its bytes. So `readExactly` takes one only in its maker's form.
*/
/** A signed document in other bytes than its maker's. */
var NotExact = class extends BadInput {
	get code() {
		return "NOT_CANONICAL";
	}
};
/** Read a document that is good only in the bytes that one of `forms` makes of what `read` found. Raises `BadInput`. */
function readExactly(raw, where, read, ...forms) {
	const found = read(readJson(raw));
	if (!forms.some((form) => areSameBytes(raw, encoder.encode(form(found))))) throw new NotExact(`${where} is not written, byte for byte, as Aver writes it: it was changed on its way`);
	return found;
}
/** An object with these keys in this order, as far as it has them. */
function orderKeys(value, names) {
	const found = /* @__PURE__ */ new Map();
	for (const name of names) if (value.has(name)) found.set(name, value.get(name));
	return found;
}
/** A document as Aver writes it to a file: in ASCII, keys sorted, indented by two, with a final line feed. */
function dumpDocument(value) {
	return `${indent(value, "\n", sortedKeys, scalar)}\n`;
}
/** The same in UTF-8, with the keys as they stand. */
function dumpAsItStands(value) {
	return `${indent(value, "\n", (object) => [...object.keys()], compactJson)}\n`;
}
function scalar(value) {
	if (typeof value === "string") return asciiString(value);
	return value instanceof JsonNumber ? canonicalNumber(value) : String(value);
}
function indent(value, line, keysOf, write) {
	const inner = `${line}  `;
	const join = (items, [open, close]) => items.length ? open + inner + items.join(`,${inner}`) + line + close : `${open}${close}`;
	const nested = (item) => indent(item, inner, keysOf, write);
	if (isObject(value)) return join(keysOf(value).map((key) => `${write(key)}: ${nested(value.get(key))}`), "{}");
	return Array.isArray(value) ? join(value.map(nested), "[]") : write(value);
}
/** One line, with a space after each separator, as CapSeal hashes documents. */
function dumpSpaced(value) {
	if (isObject(value)) return `{${sortedKeys(value).map((key) => `${asciiString(key)}: ${dumpSpaced(value.get(key))}`).join(", ")}}`;
	if (Array.isArray(value)) return `[${value.map(dumpSpaced).join(", ")}]`;
	return scalar(value);
}
// src/verify/bundle/head.ts
/** The signed heads of a bundle, `head.json`. The twin of `aver.ledger.bundle.head_file` and of `ledger.checkpoint`. */
var CHECK$2 = "head";
/** Most keys of a bundle's `keys` chain that are noted. */
var RECORDED_MAX = 1e4;
var WHERE = place(null, null, HEAD$1);
/** Note the key that came into use by a record of a `keys` chain, by fingerprint. The first record counts. */
function noteRecordedKey(record, found) {
	if (!["key.create", "key.rotate"].includes(record.kind)) return;
	const [key, pq, fingerprint] = [
		"public_key",
		"public_key_pq",
		"fingerprint"
	].map((name) => at(record.content, "outcome", "result", name));
	if (typeof key !== "string" || typeof pq !== "string" || typeof fingerprint !== "string") return;
	if (found.size < RECORDED_MAX && !found.has(fingerprint)) found.set(fingerprint, {
		publicKey: key,
		publicKeyPq: pq
	});
}
/** Read a statement as a checkpoint. Raises `BadInput`. */
function readCheckpoint(statement, where) {
	const { content } = statement;
	if (statement.purpose !== "checkpoint" || !equalJson(content.get("v"), new JsonNumber("1"))) throw new BadInput(`${where} is a statement, but not a checkpoint`);
	const [heads, when, since = null] = [
		"heads",
		"at",
		"since"
	].map((name) => content.get(name));
	if (!isObject(heads) || typeof when !== "string" || !(since === null || typeof since === "string")) throw new BadInput(`${where} does not list heads and its time`);
	const [ledger, tenant] = ["ledger", "tenant"].map((name) => content.get(name));
	if (typeof ledger !== "string" || typeof tenant !== "string") throw new BadInput(`${where} does not name a ledger and a tenant`);
	return {
		statement,
		at: when,
		ledger,
		tenant,
		heads: [...heads].map(([chain, head]) => {
			if (!isObject(head) || head.size !== 2 || !head.has("count") || !head.has("hash")) throw new BadInput(`${where}: its head of ${show(chain)} is not valid`);
			return readHead(new Map([
				["ledger", ledger],
				["tenant", tenant],
				["chain", chain],
				...head
			]));
		}),
		isPart: content.has("part") && content.get("part") !== false
	};
}
/** Read the `head.json` of a bundle; null if there is none. Raises `BadInput` if it is not of its form. */
async function readBundleHead(directory) {
	let raw;
	try {
		raw = await readStart(await directory.open(HEAD$1), ELEMENT_MAX + 1);
	} catch (error) {
		if (error instanceof NotFound) return null;
		throw error;
	}
	return readExactly(raw, HEAD$1, readContent$1, ({ statement }) => {
		const content = orderKeys(statement.content, [
			"v",
			"ledger",
			"tenant",
			"at",
			"heads",
			"part"
		]);
		content.set("heads", orderHeads(content.get("heads")));
		return dumpAsItStands(statementFields$1({
			...statement,
			content
		}));
	});
}
/** The heads in a statement, in the order of `names`, or by their names. */
function orderHeads(heads, names = sortedKeys(heads)) {
	const ordered = orderKeys(heads, names);
	for (const [name, head] of ordered) ordered.set(name, orderKeys(head, ["count", "hash"]));
	return ordered;
}
function readContent$1(data) {
	const statement = readStatement(data, HEAD$1);
	const found = readCheckpoint(statement, HEAD$1);
	const keys = [
		"v",
		"ledger",
		"tenant",
		"part",
		"heads",
		"at"
	];
	const { content } = statement;
	if (content.size !== keys.length || !keys.every((key) => content.has(key)) || typeof content.get("part") !== "boolean") throw new BadInput(`${HEAD$1} does not state exactly ${keys.join(", ")}`);
	return found;
}
/** Compare the chains of a bundle, by their ids, with its `head.json`. */
function checkBundleHead(head, heads, tally, of, rules, history) {
	tally.countDone(CHECK$2);
	if (head.ledger !== of.ledger || head.tenant !== of.tenant) {
		tally.fail(CHECK$2, "CHAIN_IDENTITY", `${HEAD$1} is of ledger ${show(head.ledger)}; this is another`, WHERE);
		return;
	}
	if (!checkSigners(head, rules, tally, history, {
		check: CHECK$2,
		name: "head.json"
	})) return;
	const listed = new Map(head.heads.map((one) => [one.chain, one]));
	for (const [chain, stated] of listed) {
		const actual = heads.get(chain) ?? null;
		if (actual !== null && actual.count > stated.count) {
			const words = `${HEAD$1} states ${stated.count} records of this chain; ${actual.count} are here`;
			tally.fail(CHECK$2, "HEAD_MISMATCH", words, place(chain, stated.count), {
				stated: { ...stated },
				actual: { ...actual }
			});
		} else checkHead(stated, actual, actual?.hash ?? null, tally, CHECK$2, HEAD$1);
	}
	for (const chain of heads.keys()) if (!listed.has(chain)) tally.fail(CHECK$2, "HEAD_MISMATCH", `${HEAD$1} does not list this chain: it was added after the export`, place(chain));
	const which = head.isPart ? "a part of the ledger" : "the whole ledger";
	tally.notes.set(CHECK$2, `${listed.size} chains, ${which}, as signed at ${head.at}`);
}
/** Check who signed a statement about the chains of a bundle. Returns false if its heads must not be used. */
function checkSigners(stated, rules, tally, history, named) {
	if (!checkSignatures(stated, rules, tally, history, named)) return false;
	const { check, name } = named;
	const where = place(null, null, name);
	for (const { key } of checkStatement(stated.statement, rules.ring, rules.ed25519)) {
		if (key === null) continue;
		if (!history.roles.has(key.ed25519)) {
			const words = `${name} was signed by ${key.fingerprint}, which the keys chain of the bundle does not record`;
			tally.warn(check, "UNKNOWN_SIGNER", words, where);
		}
		const limits = history.retired.get(key.ed25519)?.limits ?? null;
		if (limits !== null && [...stated.heads].some(({ chain, count }) => count > (limits.get(chain) ?? 0))) {
			const words = `${name} was signed by ${key.fingerprint}, and has records from after that key was retired`;
			tally.fail(check, "KEY_RETIRED", words, where);
		}
	}
	return true;
}
/** Check every signature of a statement that only the ledger may make. Returns false if its heads must not be used. */
function checkSignatures({ statement, at: madeAt }, given, tally, history, { check, name }) {
	const where = place(null, null, name);
	const results = checkStatement(statement, given.ring, given.ed25519);
	const fail = (code, words) => {
		tally.fail(check, code, words, where);
		return false;
	};
	if (!results.length) return fail("SIG_MISSING", `${name} is not signed`);
	const rules = rulesOf(history, given);
	for (const { by, key, outcome } of results) {
		if (outcome === "invalid") return fail("SIG_INVALID", `the signature of ${name} was not made by ${by}`);
		if (key === null) {
			const words = `${name} was signed by ${by}, whose key is not known here`;
			tally.add({
				check,
				status: "not_checked",
				code: "UNKNOWN_SIGNER",
				words,
				place: where
			});
			continue;
		}
		const role = roleOf(rules, key);
		if (role !== null && !role.mayAttest) return fail("KEY_MISMATCH", `${name} was signed by ${by}, a key of ${role}; only the ledger's key may`);
		const retiredAt = rules.retired.get(key.ed25519)?.retiredAt ?? null;
		if (retiredAt !== null && madeAt > retiredAt) return fail("KEY_RETIRED", `${name} says it was made at ${madeAt}; ${by}, who signed it, was retired at ${retiredAt}`);
	}
	return true;
}
/** Stands for the source of a chain that an older version imported under a name without digits. */
var OLD_IMPORT = "imported";
/** The digits in the stored name of an imported chain; null for other names. */
function readDigits(chain) {
	return /^import\.([0-9a-f]{16})\./.exec(chain)?.[1] ?? null;
}
/** Imports and drops in the order of their entries. */
var ImportHistory = class {
	/** The chains that are imported after the newest entry, by their names here. */
	imported = /* @__PURE__ */ new Map();
	/** `replaced` has the key that each key of the ledger replaced, by their 64 digits. */
	constructor(ring, replaced) {
		this.ring = ring;
		this.replaced = replaced;
	}
	/** Take up an entry. Returns the heads of the chains that it drops; an entry of another form drops none. */
	add(record) {
		const dropped = /* @__PURE__ */ new Map();
		const { content } = record;
		const result = at(content, "outcome", "result");
		if (!isObject(result)) return dropped;
		const kind = readKind(content);
		if (kind === "chain.import" && result.get("kind") === "chain_import") {
			const [chain, origin, count, hash] = [
				"chain",
				"origin",
				"capsule_count",
				"head_hash"
			].map((name) => result.get(name));
			const number = readInteger(count);
			if (chain === void 0 || origin === void 0 || hash === void 0 || number === null) return dropped;
			this.imported.set(text(chain), {
				origin: text(origin),
				count: number,
				hash: text(hash),
				signedBy: record.signed_by
			});
		} else if (kind === "chain.drop" && result.get("kind") === "chain_drop") {
			const chains = result.get("chains");
			if (!isObject(chains)) return dropped;
			for (const [name, head] of chains) {
				const known = this.imported.get(name);
				if (known === void 0) continue;
				if (!isObject(head) || !head.has("count") || !head.has("hash")) return /* @__PURE__ */ new Map();
				if (equalJson(head.get("count"), new JsonNumber(String(known.count))) && head.get("hash") === known.hash && this.mayDrop(record.signed_by, known.signedBy)) dropped.set(name, {
					count: known.count,
					hash: known.hash
				});
			}
		}
		for (const name of dropped.keys()) this.imported.delete(name);
		return dropped;
	}
	/** Whether a key is the importer's, or came after the importer's by rotations. Where one is unknown, nothing tells. */
	mayDrop(key, importer) {
		const [dropping, importing] = [this.ring.lookup(key), this.ring.lookup(importer).map((one) => one.ed25519)];
		return !dropping.length || !importing.length || dropping.some((one) => this.follows(one.ed25519, importing));
	}
	follows(key, first) {
		const seen = /* @__PURE__ */ new Set();
		for (let at = key; at !== void 0 && !seen.has(at); at = this.replaced.get(at)) {
			if (first.includes(at)) return true;
			seen.add(at);
		}
		return false;
	}
};
function text(value) {
	return typeof value === "string" ? value : value instanceof JsonNumber ? value.text : String(value);
}
/** Remove dropped chains from the heads that `meta` records, if their latest head is the one that was dropped. */
function forgetDropped(latest, dropped) {
	for (const [chain, { count, hash }] of dropped) {
		const head = latest.get(chain);
		if (head !== void 0 && head.count === count && head.hash === hash) latest.delete(chain);
	}
}
/** Add the heads of one `meta` entry, Aver's or the public tool's, to `latest`. A malformed entry adds none after its flaw. */
function collectHeads(content, latest, ledger, tenant) {
	try {
		for (const [chain, count, hash] of listHeads(at(content, "outcome", "result"))) {
			const data = /* @__PURE__ */ new Map([["ledger", ledger], ["tenant", tenant]]);
			for (const [key, value] of [
				["chain", chain],
				["count", count],
				["hash", hash]
			]) {
				if (value === void 0) return;
				data.set(key, value);
			}
			latest.set(chain, readHead(data));
		}
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
	}
}
function* listHeads(result) {
	if (!isObject(result)) return;
	const kind = result.get("kind");
	if (kind === "conversation_seal") {
		const [tool, session] = [result.get("tool"), result.get("session_id")];
		if (typeof tool !== "string" || typeof session !== "string") return;
		yield [
			tool === session && RESERVED_CHAINS.has(tool) ? tool : `${tool}.${session}`,
			result.get("capsule_count"),
			result.get("head_hash")
		];
	} else if (kind === "chain_import") yield [
		result.get("chain"),
		result.get("capsule_count"),
		result.get("head_hash")
	];
	else if (kind === "checkpoint") {
		const heads = result.get("heads");
		if (!isObject(heads)) return;
		for (const [chain, head] of heads) {
			if (!isObject(head)) return;
			yield [
				chain,
				head.get("count"),
				head.get("hash")
			];
		}
	}
}
/** The chain of a public tool's entry, if that tool keeps it in a database outside its usual directory. */
function findExternalChain(content) {
	const result = at(content, "outcome", "result");
	if (!isObject(result)) return null;
	const [path, tool, session] = [
		"db",
		"tool",
		"session_id"
	].map((name) => result.get(name));
	if (typeof path !== "string" || typeof tool !== "string" || typeof session !== "string") return null;
	const parts = path.split("/").filter((part) => part !== "" && part !== ".");
	const last = parts.at(-1) ?? "";
	const dot = last.lastIndexOf(".");
	const stem = dot > 0 && dot < last.length - 1 ? last.slice(0, dot) : last;
	return (parts.at(-2) ?? "") === tool && stem === session ? null : `${tool}.${session}`;
}
// src/verify/bundle/meta.ts
/** What the meta chain of a bundle remembers of its chains, compared with the chains that are here. */
var HEADS_MAX = 1e6;
/** The heads that entries of the meta chain record, by the names that the chains had there. */
var MetaMemory = class {
	heads = /* @__PURE__ */ new Map();
	elsewhere = /* @__PURE__ */ new Set();
	made = /* @__PURE__ */ new Set();
	compared = /* @__PURE__ */ new Set();
	doubtfulDrops = 0;
	grown = 0;
	outside = 0;
	constructor(imports) {
		this.imports = imports;
	}
	/** Take up an entry of the meta chain. */
	take(record, content, owner, rules) {
		if (this.heads.size >= HEADS_MAX) return;
		this.noteClaim(content);
		collectHeads(content, this.heads, owner.ledger ?? "", owner.tenant ?? "");
		const external = findExternalChain(content);
		if (external !== null && this.heads.has(external)) this.elsewhere.add(external);
		this.noteImport(record, content, rules);
	}
	/**
	* Compare a chain with the head that was remembered under this name before the chain was read. `atHead` is the hash at
	* that head's place. The meta chain knows a chain by the name that it had there; findings have its id in this bundle.
	*/
	compare(name, remembered, actual, atHead, tally) {
		if (remembered === void 0) {
			this.outside += Number(!RESERVED_CHAINS.has(actual.chain));
			return;
		}
		this.compared.add(name);
		this.grown += Number(checkHead({
			...remembered,
			chain: actual.chain
		}, actual, atHead, tally, "meta", "the meta chain"));
	}
	/** Note a chain that an entry calls imported, and that was recorded before: it was made there, and stays so. */
	noteClaim(content) {
		if (readKind(content) !== "chain.import") return;
		const claimed = /* @__PURE__ */ new Map();
		collectHeads(content, claimed, "", "");
		for (const name of claimed.keys()) if (this.heads.has(name)) this.made.add(name);
	}
	/** Take up an entry of the meta chain about an import or a drop. An entry that does not hold drops nothing. */
	noteImport(record, content, rules) {
		const kind = readKind(content);
		if (kind === "chain.import") this.imports.add(record);
		else if (kind === "chain.drop") {
			const judge = new ChainJudge(rules, {
				chain: META_CHAIN,
				start: null
			});
			judge.judge(record);
			if (judge.tally.hasFailed()) return;
			const dropped = this.imports.add(record);
			forgetDropped(this.heads, [...dropped].filter(([name]) => !this.made.has(name)));
			if (judge.tally.findings.length || judge.signer === null) this.doubtfulDrops += dropped.size;
		}
	}
	/** Report the chains that the meta chain knows and the index does not list. */
	checkMissing(isPart, tally) {
		if (!this.heads.size) {
			tally.skip("meta", "the meta chain records no chain", { matters: false });
			return;
		}
		if (this.doubtfulDrops) {
			const words = `that ${this.doubtfulDrops} imported chains were dropped says an entry by an unknown signer`;
			tally.skip("meta", words, { matters: true });
		}
		const missing = [...this.heads].filter(([name]) => !this.compared.has(name));
		if (isPart && missing.length) tally.skip("meta", `${missing.length} chains that the meta chain knows are not in this part`, { matters: true });
		let elsewhere = 0;
		for (const [name, head] of isPart ? [] : missing) if (this.elsewhere.has(name)) elsewhere++;
		else checkHead(head, null, null, tally, "meta", "the meta chain");
		if (elsewhere) tally.skip("meta", `${elsewhere} chains were kept in databases of their own and are not here`, { matters: true });
		if (this.heads.size >= HEADS_MAX) tally.skip("meta", `the meta chain records more than ${HEADS_MAX} chains`, { matters: true });
		const compared = `${this.compared.size} chains match their recorded heads`;
		tally.notes.set("meta", `${compared} (${this.grown} grown since, ${this.outside} not recorded)`);
	}
};
// src/verify/bundle/reader.ts
/** Decisions that can be found by their hashes. */
var INDEXED_MAX = 2e5;
/** Reads the chains of a bundle that were judged. */
var BundleReader = class {
	decisions = null;
	constructor(directory, heads, index) {
		this.directory = directory;
		this.heads = heads;
		this.files = new Map(index.chains.map((claim) => [claim.id, fileOf(claim)]));
	}
	async *read(chain) {
		const name = this.files.get(chain);
		if (name === void 0) throw new NotFound(`the chain ${chain} is not in the bundle`);
		for await (const items of readChainFile(await this.directory.open(name))) for (const item of items) {
			if (!(item instanceof Sealed)) continue;
			item.chain = chain;
			yield item;
		}
	}
	async get(hash) {
		if (this.decisions === null) {
			this.decisions = /* @__PURE__ */ new Map();
			for (const chain of this.files.keys()) {
				if (!chain.split(".").includes("gate")) continue;
				for await (const record of this.read(chain)) {
					if (this.decisions.size >= INDEXED_MAX) break;
					this.decisions.set(record.hash, record);
				}
			}
		}
		return this.decisions.get(hash) ?? null;
	}
	blob(digest) {
		return readBundleBlob(this.directory, digest);
	}
	head(chain) {
		return this.heads.get(chain) ?? null;
	}
};
// src/verify/gzip.ts
/**
* Unpack gzip in pieces, by the platform's own reader: exactly one member, and nothing after it.
*
* The standard wants this strictness of `DecompressionStream`. An older platform, such as Node.js before version 24, goes on
* with a second member, or skips what follows. There the end is checked by hand: a verifier must not overlook bytes.
*/
/** An empty file, packed. */
var EMPTY = new Uint8Array([
	31,
	139,
	8,
	0,
	0,
	0,
	0,
	0,
	0,
	3,
	3,
	0,
	0,
	0,
	0,
	0,
	0,
	0,
	0,
	0
]);
/** Bytes at the end of a member: a checksum and the size. */
var TRAILER = 8;
var isStrict;
/**
* Unpack what `next` gives until it gives null. Raises `Unreadable` if that is no gzip, damaged, or more than one file, and
* what `next` raises. The reader is at most some pieces ahead of the caller: with short pieces, a bomb stays small.
*/
async function* unpackGzip(next) {
	isStrict ??= canUnpack(new DecompressionStream("gzip"), [EMPTY, EMPTY]).then((can) => !can);
	if (await isStrict) return yield* unpack(new DecompressionStream("gzip"), next);
	const pieces = [];
	yield* unpack(new DecompressionStream("gzip"), async () => {
		const piece = await next();
		if (piece !== null) pieces.push(piece);
		return piece;
	});
	const packed = new Uint8Array(await new Blob(pieces).arrayBuffer());
	const content = packed.subarray(findContent(packed), packed.length - TRAILER - 1);
	if (await canUnpack(new DecompressionStream("deflate-raw"), [content])) throw new Unreadable("something follows the packed file");
}
async function* unpack(stream, next) {
	let failure = new Unreadable("no gzip, or a damaged one");
	let isOver = false;
	const reader = new ReadableStream({
		pull: async (control) => {
			const piece = await next().catch((error) => {
				throw failure = error;
			});
			if (isOver) return;
			if (piece === null) control.close();
			else control.enqueue(piece);
		},
		cancel: () => void (isOver = true)
	}).pipeThrough(stream).getReader();
	let isWhole = false;
	try {
		for (;;) {
			const { value, done } = await reader.read().catch(() => {
				throw failure;
			});
			isWhole = done;
			if (isWhole) return;
			yield value;
		}
	} finally {
		if (!isWhole) {
			await new Promise((goOn) => setTimeout(goOn));
			await reader.cancel().catch(() => {});
		}
	}
}
async function canUnpack(stream, pieces) {
	try {
		for await (const _ of unpack(stream, async () => pieces.shift() ?? null));
		return true;
	} catch {
		return false;
	}
}
/** Where the content begins, behind a header that a reader has accepted. */
function findContent(packed) {
	const flags = packed[3];
	let at = 10;
	if (flags & 4) at += 2 + packed[at] + 256 * packed[at + 1];
	for (const text of [8, 16]) if (flags & text) at = packed.indexOf(0, at) + 1;
	return flags & 2 ? at + 2 : at;
}
// src/verify/bundle/site.ts
/** A bundle that is also a site: the twins of its files, which a page on file:// shows. The twin of `aver.ledger.bundle.site`. */
var CHECK$1 = "page";
var DATA = "explorer/data";
/** The list of the files that have twins. */
var NAMES = `${DATA}/names.js`;
var NAMES_MAX = 16777216;
/** Bytes at the beginning of a twin that hold the name of its file. */
var TWIN_HEAD_MAX = 4096;
var TWIN_END = "\");\n";
/** Characters of base64 that are unpacked at a time. Four of them are three bytes. */
var TWIN_PIECE = 32768;
/** The names that a site adds to a bundle's directory. */
var SITE_NAMES = /* @__PURE__ */ new Set(["index.html", "explorer"]);
/** The path of the twin of the file with this number. */
function twinOf(number) {
	return `${DATA}/${number}.js`;
}
/** Whether a page lies in the directory of a bundle, or any part of one. */
async function isSite(directory) {
	return (await directory.list()).some((name) => SITE_NAMES.has(name));
}
/** Compare every twin with its file (check `page`). */
async function checkSite(directory, index, blobs, tally, isPageJudged) {
	const beside = await directory.list("explorer") ?? [];
	if (!beside.includes("app.js") && !beside.includes("data")) return;
	const fail = (words, source) => tally.fail(CHECK$1, "ARTIFACT_HASH_MISMATCH", words, place(null, null, source));
	let names;
	try {
		names = await readNames(await openPath(directory, NAMES));
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		fail(error.message, NAMES);
		return;
	}
	for (const [number, name] of names.entries()) {
		tally.countDone(CHECK$1);
		const where = twinOf(number);
		try {
			if (!await isTwin(directory, where, name)) fail(`the page would show other bytes of ${name} than the bundle has`, where);
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			fail(error.message, where);
		}
	}
	const files = [
		INDEX,
		HEAD$1,
		...index.meta === null ? [] : [META],
		...index.chains.map(fileOf),
		...[...blobs].sort().map((digest) => `${BLOBS}/${digest}`)
	];
	for (const name of files) if (!names.includes(name) && await exists(directory, name)) fail(`${name} has no twin: the page would not show it`, DATA);
	tally.notes.set(CHECK$1, `${names.length} files are those that the page shows; ${isPageJudged ? "the page is one of Aver's" : "whether the page is one of Aver's, aver verify says"}`);
}
async function exists(directory, name) {
	try {
		await openPath(directory, name);
		return true;
	} catch (error) {
		if (error instanceof BadInput) return false;
		throw error;
	}
}
function openPath(directory, path) {
	return directory.open(...path.split("/"));
}
/** A text with one unit for each byte, so that a place in it is a place in the bytes. Only its ASCII is what it was. */
function readText$1(data) {
	return new TextDecoder("latin1").decode(data);
}
/** Read the list of the files that have twins. Raises `BadInput`. */
async function readNames(file) {
	if (file.size > NAMES_MAX) throw new BadInput("names.js is too large");
	const script = await readStart(file, NAMES_MAX);
	const names = /^averNames\(\[[^]*\]\);\n$/.test(readText$1(script)) ? readJson(script.subarray(10, -3)) : null;
	if (!Array.isArray(names) || !names.every((name) => typeof name === "string" && name.isWellFormed())) throw new BadInput("names.js does not list files");
	if (new Set(names).size !== names.length) throw new BadInput("names.js lists a file twice");
	return names;
}
/** Whether a twin has the name and the bytes of a file. Both are read in pieces. Raises `BadInput` if one of them cannot be read. */
async function isTwin(directory, path, name) {
	const file = await openPath(directory, name);
	const twin = await openPath(directory, path);
	const script = await readStart(twin, TWIN_HEAD_MAX);
	const head = /^averFile\(("(?:[^"\\]|\\[^])*"),"/.exec(readText$1(script));
	const start = head?.[0].length ?? 0;
	const end = twin.size - 4;
	if (head === null || end < start || readText$1(await twin.read(end, twin.size)) !== TWIN_END) throw new BadInput(`${path} is no twin of a file`);
	if (readJson(script.subarray(9, start - 2)) !== name) return false;
	let packed = start;
	const next = async () => {
		if (packed === end) return null;
		const piece = decodeBase64(readText$1(await twin.read(packed, packed = Math.min(packed + TWIN_PIECE, end))));
		if (piece === null || packed < end && piece.length < TWIN_PIECE * .75) throw new BadInput(`${path} is damaged`);
		return piece;
	};
	let at = 0;
	for await (const bytes of unpackGzip(next)) if (!areSameBytes(await file.read(at, at += bytes.length), bytes)) return false;
	return at === file.size;
}
// src/verify/bundle/sources.ts
function sourceKey({ digits, ledger, tenant }) {
	return JSON.stringify([
		digits,
		ledger,
		tenant
	]);
}
/** The source of an imported chain: the digits in its name here, and the ledger and tenant in its first record. */
function identifySource(stored, named) {
	const name = (key) => named?.has(key) ? pythonText(named.get(key)) : "";
	return {
		digits: readDigits(stored) ?? "imported",
		ledger: name("ledger"),
		tenant: name("tenant")
	};
}
// src/verify/bundle/judge.ts
/**
* Verifying a bundle. The twin of `aver.ledger.bundle.verify`, in the same order:
*
* 1. The index is read. Its claims prove nothing; a wrong claim fails (check `index`).
* 2. The meta chain is judged. It records how long each chain was.
* 3. Every chain that the index lists is judged, and compared with the claims and with the meta chain.
* 4. Every blob that a record refers to must have the bytes of its digest.
* 5. The chains are compared with the signed heads in `head.json` (check `head`).
* 6. Files that nobody lists are a warning.
* 7. Examiners check the records of other rooms.
*
* Files are streamed; memory grows with the number of chains and blobs, not with their size.
*/
var SIGNERS_KEPT = 1e3;
var SHORT_CHAINS_MAX = 1e3;
/** A bundle under verification. */
var BundleJudge = class {
	tally = new Tally();
	shown = new Tally();
	heads = /* @__PURE__ */ new Map();
	signers = /* @__PURE__ */ new Set();
	origins = /* @__PURE__ */ new Map();
	histories = /* @__PURE__ */ new Map();
	recorded = /* @__PURE__ */ new Map();
	owner = NO_OWNER;
	byIndexAlone = 0;
	absent = 0;
	failed = 0;
	short = 0;
	constructor(directory, index, options, meter) {
		this.directory = directory;
		this.index = index;
		this.options = options;
		this.meter = meter;
		this.keyHistory = {
			...NO_HISTORY,
			retired: retirementsByTime(options.ring, options.ed25519)
		};
		const { requirePq = false } = options;
		this.rules = plainRules(options.ring, options.ed25519, {
			retired: this.keyHistory.retired,
			requirePq,
			crew: options.crew ?? null,
			along: options.along ?? /* @__PURE__ */ new Map()
		});
		this.meta = new MetaMemory(new ImportHistory(options.ring, /* @__PURE__ */ new Map()));
		this.blobs = new BundleBlobs(directory, index.areBlobsLeftOut, meter);
	}
	/** Read what has to be known before the first chain is judged: the owner, and the history of keys. */
	async prepare() {
		const { ledger, tenant } = this.index;
		const signed = ledger !== null && tenant !== null ? NO_OWNER : await readOwner(this.directory, this.index);
		this.owner = {
			ledger: ledger ?? signed.ledger,
			tenant: tenant ?? signed.tenant
		};
		const replaced = /* @__PURE__ */ new Map();
		for (const claim of this.index.chains) {
			if (claim.id !== "keys" && claim.origin !== "keys") continue;
			try {
				const { named, batches } = await peekChainIdentity(await this.directory.open(fileOf(claim)));
				const source = identifySource(claim.id, named);
				const identity = {
					ledger: source.ledger,
					tenant: source.tenant
				};
				const reader = new HistoryReader(this.options.ring, this.options.ed25519, identity);
				for await (const items of batches) {
					const records = items.filter((item) => item instanceof Sealed);
					await prepareRecords(this.rules, records);
					for (const record of records) {
						reader.take(record);
						if (claim.id !== "keys") continue;
						const pair = readReplacement(record, this.rules);
						if (pair !== null) replaced.set(...pair);
						if (isValidByItself(record, this.rules)) noteRecordedKey(record, this.recorded);
					}
				}
				const key = sourceKey(source);
				const history = await reader.finish((digest) => readBundleBlob(this.directory, digest));
				if (!this.histories.has(key)) this.histories.set(key, history);
			} catch (error) {
				if (!(error instanceof BadInput)) throw error;
			}
		}
		this.meta = new MetaMemory(new ImportHistory(this.options.ring, replaced));
		if (this.owner.ledger !== null) {
			const own = {
				digits: OLD_IMPORT,
				ledger: this.owner.ledger,
				tenant: this.owner.tenant ?? ""
			};
			this.keyHistory = this.histories.get(sourceKey(own)) ?? this.keyHistory;
			this.rules = rulesOf(this.keyHistory, this.rules);
		}
	}
	/** Judge everything. The numbers are those of the module's text. */
	async judge(examiners) {
		const { tally, index } = this;
		const where = place(null, null, INDEX);
		if (index.isUnfinished) {
			tally.fail("index", "CHAIN_MISSING", "the export did not finish", where);
			return tally;
		}
		const hasPage = await isSite(this.directory);
		if (hasPage) await this.options.checkPage?.(this.directory, tally);
		if (index.meta !== null) await this.judgeChain(index.meta, META);
		const ofMeta = tally.records;
		for (const claim of index.chains) {
			const limit = this.findLimit();
			if (limit !== null) {
				tally.fail("index", "NOT_READ", `${limit}; the rest was not read`, where);
				break;
			}
			await this.judgeChain(claim, fileOf(claim));
		}
		if (this.byIndexAlone) {
			const words = `that ${this.byIndexAlone} chains were imported under their names rests on the index alone`;
			tally.skip("identity", words, { matters: true });
		}
		const counts = [[
			"chains",
			index.chainCount,
			index.chains.length,
			"CHAIN_MISSING"
		], [
			"capsules",
			index.capsuleCount,
			tally.records - ofMeta,
			"TRUNCATED"
		]];
		for (const [what, counted, here, code] of counts) if (counted !== null && counted !== here) tally.fail("index", counted > here ? code : "ROLLBACK", `the index counts ${counted} ${what}; ${here} are here`, where);
		if (index.meta !== null) this.meta.checkMissing(index.isPart, tally);
		const head = await this.checkHead();
		if (index.meta === null) {
			const instead = head === null ? ": chains may have been cut or left out" : `; ${HEAD$1} states which chains there are`;
			tally.skip("meta", `the bundle has no meta chain${instead}`, { matters: false });
		}
		tally.merge(this.shown);
		await this.checkIndex(head, hasPage);
		await this.examine(examiners);
		reportUnrecorded(tally);
		return tally;
	}
	/** The limit of a bundle that is exceeded; null if all are kept. Nobody's honest bundle exceeds one. */
	findLimit() {
		if (this.absent > 1e3) return `more than ${UNREADABLE_MAX} chains that it lists are not here`;
		if (this.failed > 1e3) return `more than ${UNREADABLE_MAX} chains failed`;
		if (this.short > SHORT_CHAINS_MAX) return `more than ${SHORT_CHAINS_MAX} chains have files of less than ${SHORTEST_CHAIN} bytes: too many`;
		return null;
	}
	/** Judge one chain, and compare it with the claims about it and with the meta chain. */
	async judgeChain(claim, fileName) {
		const { tally } = this;
		const chain = claim.id;
		tally.countDone("index");
		let named;
		let name;
		let remembered;
		let seen;
		let judge;
		const unknown = /* @__PURE__ */ new Map();
		try {
			const file = await this.directory.open(fileName);
			this.short += Number(file.size < SHORTEST_CHAIN);
			const peeked = await peekChainIdentity(file, unknown);
			named = peeked.named;
			name = named === null && this.owner.ledger === null ? claimedName(claim) : claim.id;
			remembered = this.meta.heads.get(name);
			seen = new JudgedChain(remembered === void 0 ? -1 : Number(remembered.count) - 1);
			judge = this.buildJudge(claim, named);
			await this.takeAll(peeked.batches, seen, judge, chain, file.size);
		} catch (error) {
			if (error instanceof NotFound) {
				this.absent++;
				tally.fail("index", "CHAIN_MISSING", `the index lists this chain; there is no ${fileName}`, place(chain));
				return;
			}
			if (error instanceof BadInput) {
				this.failed++;
				tally.fail("schema", "SCHEMA_INVALID", error.message, place(chain));
				return;
			}
			throw error;
		}
		judge.finish();
		const isAvers = this.owner.ledger !== null;
		const origin = this.hasMade(named) ? null : named?.get("name") ?? null;
		for (const [each, who] of [[claim, "the index"], [seen.ownClaim, "its summary"]]) {
			if (each === null) continue;
			const source = {
				name: who,
				isAvers
			};
			seen.checkClaim(each, source, judge, chain, chain, this.shown);
			if (named !== null) checkOriginClaim(each, origin, source, this.shown, place(chain));
		}
		warnOfMembers(unknown, this.shown, chain);
		this.failed += Number(judge.tally.hasFailed());
		tally.merge(judge.tally);
		tally.chains++;
		const { ledger, tenant } = this.owner;
		const { facts } = seen;
		const actual = {
			ledger: ledger ?? "",
			tenant: tenant ?? "",
			chain,
			count: facts.count,
			hash: facts.headHash
		};
		this.heads.set(chain, actual);
		this.noteOrigin(chain, name, named, claim);
		if (seen.ownClaim !== null && seen.ownClaim.id !== "" && seen.ownClaim.id !== chain) tally.fail("index", "CHAIN_IDENTITY", `the file says that it is '${seen.ownClaim.id}'`, place(chain));
		this.meta.compare(name, remembered, actual, seen.atWanted, tally);
	}
	async takeAll(batches, seen, judge, chain, size) {
		let judged = 0;
		for await (const items of prepareBatches(this.rules, batches, (found) => found.filter((item) => item instanceof Sealed))) {
			let bytes = 0;
			for (const item of items) {
				if (judge.stopsReading()) return;
				const content = seen.take(item, judge);
				if (item instanceof Sealed) this.options.witness?.(chain, seen.facts.count - 1, item);
				if (content !== null && item instanceof Sealed) {
					bytes += item.canonical.length;
					this.noteRecord(item, content, chain);
					if (item.canonical.includes("\"blob\":{")) await this.blobs.check(content, chain, seen.facts.count - 1, judge.tally);
				}
			}
			judged += bytes;
			this.meter.add(items.length, bytes);
		}
		this.meter.add(0, Math.max(0, size - judged));
	}
	/** Examiners know a chain by the name in its first record, or else by the claimed one. */
	noteOrigin(chain, name, named, claim) {
		const claimed = (key, otherwise) => named?.has(key) ? pythonText(named.get(key)) : otherwise ?? "";
		const origin = claimed("name", claim.origin ?? name);
		if (!EXAMINED_DOMAINS.has(domainOf(origin))) return;
		const clean = (value) => value === "None" ? "" : value;
		this.origins.set(chain, {
			origin,
			ledger: clean(claimed("ledger", this.owner.ledger)),
			tenant: clean(claimed("tenant", this.owner.tenant))
		});
	}
	/** Note the signer of a record, and the heads in the meta chain's records. */
	noteRecord(record, content, chain) {
		if (this.signers.size < SIGNERS_KEPT) this.signers.add(record.signed_by);
		if (chain === "meta") this.meta.take(record, content, this.owner, this.rules);
	}
	/** Whether a chain with this in its first record was made by the exporting ledger itself. */
	hasMade(named) {
		const { ledger, tenant } = this.owner;
		if (named === null || ledger === null || named.get("ledger") !== ledger) return false;
		return tenant === null || named.get("tenant") === tenant;
	}
	/**
	* The judge of a chain whose first record says this about it.
	*
	* That a chain was imported excuses its name and its ledger; so it counts only for one that was not made by the
	* exporting ledger.
	*/
	buildJudge(claim, named) {
		const { ledger, tenant } = this.owner;
		if (claim.origin === null || RESERVED_CHAINS.has(claim.id) || this.hasMade(named)) {
			const identity = { name: claim.id };
			if (ledger !== null) identity["ledger"] = ledger;
			if (tenant !== null) identity["tenant"] = tenant;
			return new ChainJudge(this.rules, {
				chain: claim.id,
				identity,
				needsBlock: ledger !== null
			});
		}
		if (this.meta.imports.imported.get(claim.id)?.origin !== claim.origin) this.byIndexAlone++;
		return new ChainJudge(this.rulesForImported(claim.id, claim.origin, named), {
			chain: claim.id,
			identity: { name: claim.origin }
		});
	}
	rulesForImported(stored, origin, named) {
		const history = this.histories.get(sourceKey(identifySource(stored, named))) ?? NO_HISTORY;
		const retired = /* @__PURE__ */ new Map();
		for (const signer of /* @__PURE__ */ new Set([...this.rules.retired.keys(), ...history.retired.keys()])) {
			const ours = this.rules.retired.get(signer) ?? {
				retiredAt: null,
				limits: null
			};
			const limit = ours.limits?.get(stored);
			retired.set(signer, limit === void 0 ? history.retired.get(signer) ?? {
				retiredAt: ours.retiredAt,
				limits: null
			} : {
				retiredAt: ours.retiredAt,
				limits: /* @__PURE__ */ new Map([[origin, limit]])
			});
		}
		const recorded = named?.get("ledger") ? new Set(history.roles.keys()) : null;
		return {
			...this.rules,
			retired,
			roles: history.roles,
			recorded,
			began: history.began
		};
	}
	/** Compare the chains with the signed heads, and return these; null if there are none. */
	async checkHead() {
		const { tally, owner } = this;
		let head;
		try {
			head = await readBundleHead(this.directory);
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			tally.fail("head", error.code, error.message, place(null, null, HEAD$1));
			return null;
		}
		if (head === null) {
			if (this.directory.isLive) tally.skip("head", "a live ledger has no signed heads: its server could hold back the newest records, or whole chains that meta does not know", { matters: false });
			else if (owner.ledger !== null) tally.skip("head", `there is no ${HEAD$1}: chains may have been left out, or cut at their ends`, { matters: true });
			return null;
		}
		checkBundleHead(head, this.heads, tally, owner, this.rules, this.keyHistory);
		return head;
	}
	/** Compare the index's keys and number of blobs with the records, and warn of files that nobody lists. */
	async checkIndex(head, hasPage) {
		const { tally, index } = this;
		if (this.owner.ledger !== null) checkKeyClaims(index, head, this.signers, this.options.ring, this.recorded, tally);
		if (!this.blobs.checkCount(index.blobs, tally)) return;
		await checkUnlistedFiles(this.directory, index, this.blobs.sizes, hasPage ? SITE_NAMES : /* @__PURE__ */ new Set(), tally);
		if (hasPage) await checkSite(this.directory, index, this.blobs.present, tally, this.options.checkPage !== void 0);
	}
	/** Run the examiners on the chains, one examination for each ledger that the chains name. */
	async examine(examiners) {
		const sources = /* @__PURE__ */ new Map();
		for (const [name, { origin, ledger, tenant }] of this.origins) {
			const source = {
				digits: readDigits(name) ?? "",
				ledger,
				tenant
			};
			const key = sourceKey(source);
			const known = sources.get(key) ?? {
				...source,
				names: /* @__PURE__ */ new Map()
			};
			sources.set(key, known);
			if (!known.names.has(origin)) known.names.set(origin, name);
		}
		const doubtful = new Set(this.tally.doubtful);
		const reader = new BundleReader(this.directory, this.heads, this.index);
		for (const { digits, ledger, tenant, names } of sources.values()) {
			const isOwn = digits === "" && ledger === this.owner.ledger && tenant === this.owner.tenant;
			const chains = [...names].map(([origin, name]) => {
				return {
					name,
					origin,
					count: this.heads.get(name).count
				};
			});
			const theirs = this.histories.get(sourceKey({
				digits: digits || "imported",
				ledger,
				tenant
			})) ?? NO_HISTORY;
			const rules = isOwn ? this.rules : {
				...this.rules,
				roles: theirs.roles
			};
			const examination = {
				reader: new ValidRecords(reader, rules, names, doubtful),
				rules,
				ledger,
				tenant,
				chains,
				isComplete: !this.index.isPart && isOwn,
				isSingle: false
			};
			await examine$1(examiners, examination, this.tally);
			await noteJoins(examination, this.tally);
		}
	}
};
async function judgeBundle(directory, options, examiners) {
	const { tally } = await examineBundle(directory, options, examiners);
	return conclude(`bundle ${directory.name}`, tally, "signature", [...CHECKS, "index"]);
}
/** Judge a whole bundle. One that cannot be read is a finding. */
async function examineBundle(directory, options, examiners) {
	let judge = null;
	try {
		const index = await readIndex(directory);
		judge = new BundleJudge(directory, index, options, new ProgressMeter(options, await measureBundle(directory, index)));
		await judge.prepare();
		return {
			tally: await judge.judge(examiners),
			heads: judge.heads,
			rules: judge.rules,
			keyHistory: judge.keyHistory
		};
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		const tally = new Tally();
		tally.fail("index", error.code, error.message, place(null, null, INDEX));
		const retired = retirementsByTime(options.ring, options.ed25519);
		const keyHistory = judge === null ? {
			...NO_HISTORY,
			retired
		} : judge.keyHistory;
		return {
			tally,
			heads: /* @__PURE__ */ new Map(),
			rules: plainRules(options.ring, options.ed25519, { retired }),
			keyHistory
		};
	}
}
/** The bytes of all chains, for showing progress. They fix the bound: files that appear later are not read. */
async function measureBundle(directory, index) {
	let total = 0;
	for (const name of [...index.meta ? [META] : [], ...index.chains.map(fileOf)]) try {
		total += (await directory.open(name)).size;
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
	}
	return total;
}
// src/verify/capsules.ts
/** Capsules outside any ledger: one, an array, or one on each line. The twin of `aver.ledger.foreign.capsule_files`. */
var LINE_MAX = ELEMENT_MAX;
/** Records that are judged together, so that the platform verifies their signatures at once. */
var BATCH = 256;
/** The verdict on a file of capsules. */
async function judgeCapsules(name, source, opening, options) {
	const retired = retirementsByTime(options.ring, options.ed25519);
	const rules = plainRules(options.ring, options.ed25519, {
		retired,
		requirePq: options.requirePq ?? false,
		crew: options.crew ?? null
	});
	const judge = new ChainJudge(rules, {
		start: null,
		source: name
	});
	const meter = new ProgressMeter(options, source.size);
	let refersToBlobs = false;
	let first = null;
	let domain = "";
	const batches = prepareBatches(rules, readCapsuleItems(source, opening), (found) => found.flatMap(({ item }) => item instanceof Sealed ? [item] : []));
	read: for await (const items of batches) {
		let bytes = 0;
		for (const { where, item } of items) {
			if (judge.stopsReading()) break read;
			if (item instanceof BadInput) {
				judge.unreadable(item, where);
				continue;
			}
			const content = judge.judge(item);
			bytes += item.canonical.length;
			if (content === null) continue;
			if (first === null) {
				first = content.get("sequence");
				domain = readBlock(content) === null ? "" : content.get("domain");
			}
			refersToBlobs ||= item.canonical.includes(BLOB_REFERENCE);
		}
		meter.add(items.length, bytes);
	}
	const tally = judge.finish();
	if (first !== null && BigInt(first.text) !== 0n && tally.records > 1) tally.skip("genesis", `begins at sequence ${first.text}: the records before it are not here`, { matters: true });
	if (refersToBlobs) tally.skip("blobs", "the large values that it refers to are not here", { matters: false });
	tally.skip("meta", "nothing here shows how many records there once were", { matters: false });
	skipExaminers(domain, "the ledger that these records are from is not here", tally);
	tally.chains = Number(tally.records > 1);
	return conclude(name, tally);
}
/** Stream the records, each with its place for messages. An unreadable record is given as an error. */
async function* readCapsuleItems(source, opening) {
	let items = [];
	for await (const { where, data } of opening === "[" ? readArray(source) : readDocuments(source)) {
		try {
			if (data instanceof BadInput) throw data;
			const item = sealedFromJson(data);
			if (!item.hash) throw new Unreadable("it is not sealed: it has no hash");
			items.push({
				where,
				item: checkSealFields(item)
			});
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			items.push({
				where,
				item: error
			});
		}
		if (items.length >= BATCH) {
			yield items;
			items = [];
		}
	}
	if (items.length) yield items;
}
/** The elements of a JSON array as texts. After an unreadable one, the rest cannot be found. */
async function* readArray(source) {
	let number = 0;
	for await (const { items, error } of readElementTexts(source)) {
		for (const text of items) yield {
			where: `element ${++number}: `,
			data: text
		};
		if (error !== null) yield {
			where: `element ${number + 1}, and the rest unread: `,
			data: error
		};
	}
}
/** One document over several lines, or one document on each line; the first two lines show which. */
async function* readDocuments(source) {
	const reader = new LineReader(source);
	let number = 1 + await reader.skipBlanks();
	const first = await readLine(reader);
	if (first === null) return;
	const second = await readLine(reader);
	if (second === null) {
		yield {
			where: "",
			data: checkLength(first)
		};
		return;
	}
	const endsAnObject = lastSolid(first) === 125;
	const beginsAnObject = second.find((byte) => byte !== 32 && byte !== 9) === 123;
	if (!endsAnObject && !beginsAnObject) {
		const start = joinBytes(first, second);
		yield {
			where: "",
			data: checkLength(joinBytes(start, await reader.readRest(Math.max(ELEMENT_MAX + 1 - start.length, 0))))
		};
		return;
	}
	const pending = [second];
	for (let line = first; line !== null;) {
		if (!isBlank(line)) yield {
			where: `line ${number}: `,
			data: checkLength(line)
		};
		else if (!pending.length) number += await reader.skipBlanks();
		line = pending.pop() ?? await readLine(reader);
		number++;
	}
}
/** The next line, cut a little beyond the limit, so that it is recognised as too long; null at the end. */
async function readLine(reader) {
	const line = await reader.readLine(LINE_MAX + 2);
	for (let rest = line; rest !== null && rest.length > LINE_MAX + 1 && rest.at(-1) !== 10;) rest = await reader.readLine(LINE_MAX + 2);
	return line;
}
function checkLength(text) {
	return text.length <= LINE_MAX + 1 ? text : new Unreadable(`larger than ${LINE_MAX} bytes`);
}
/** White space as Python strips it from bytes. */
function isStripped(byte) {
	return byte === 32 || byte >= 9 && byte <= 13;
}
function isBlank(line) {
	return line.every(isStripped);
}
function lastSolid(line) {
	for (let at = line.length - 1; at >= 0; at--) if (!isStripped(line[at])) return line[at];
}
function joinBytes(one, other) {
	const joined = new Uint8Array(one.length + other.length);
	joined.set(one);
	joined.set(other, one.length);
	return joined;
}
// src/verify/report.ts
/**
* Reports: one HTML page that carries its records as a bundle, and a signed statement about itself. The twin of
* `aver.sessions.report_file` and `aver.sessions.report_verdict`, which describe the format.
*/
var CHECK = "report";
var STATEMENT = "statement";
var PAGE = place(null, null, "page");
var STATEMENT_PLACE = place(null, null, STATEMENT);
var FILE_OPENING = "<script type=\"application/vnd.aver.file\" data-name=\"";
var STATEMENT_OPENING = "<script type=\"application/vnd.aver.statement\" id=\"aver-report\">";
var CLOSING = "<\/script>";
/** Largest report that is judged: its text has to fit into one string. */
var REPORT_MAX = 536869888;
var FILES_MAX = 1e5;
var STATEMENT_MAX = 16777216;
var COUNT_END = 2n ** 63n;
var FILE_NAME = /^(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,199}|blobs\/[0-9a-f]{64})$/;
var NAME_MAX = 210;
var CONTENT_KEYS = [
	"v",
	"subject",
	"since",
	"until",
	"heads",
	"verdict",
	"made_at",
	"sha256"
];
var VERDICT_KEYS = [
	"status",
	"level",
	"records",
	"chains"
];
/** The verdict on a report. */
async function judgeReport(name, source, options, examiners) {
	if (source.size > REPORT_MAX) throw new NotJudged(`${name} is too large for this verifier; run: aver verify ${name}`);
	let tally = new Tally();
	let parts = null;
	try {
		parts = splitReport(await source.read(0, source.size));
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		tally.fail(CHECK, "SCHEMA_INVALID", error.message, PAGE);
	}
	if (parts !== null) tally = await judgeParts(name, parts, options, examiners);
	return conclude(name, tally, "signature", [
		...CHECKS,
		"index",
		CHECK
	]);
}
/** Take a report apart. Raises `BadInput` if its blocks are not of their form. */
function splitReport(data) {
	const text = new TextDecoder("latin1").decode(data);
	const first = text.indexOf(STATEMENT_OPENING);
	if (first < 0 || text.indexOf(STATEMENT_OPENING, first + 1) >= 0) throw new BadInput("a report has one block for its statement");
	const start = first + 63;
	const end = text.indexOf(CLOSING, start);
	if (end < 0 || end - start > STATEMENT_MAX) throw new BadInput("the block of the statement does not end");
	const hash = startSha256();
	hash.update(data.subarray(0, start));
	hash.update(data.subarray(end));
	const files = /* @__PURE__ */ new Map();
	for (let at = text.indexOf(FILE_OPENING); at >= 0; at = text.indexOf(FILE_OPENING, at)) {
		const nameStart = at + 52;
		const nameEnd = text.indexOf("\">", nameStart);
		const name = nameEnd < 0 || nameEnd - nameStart > NAME_MAX ? "" : text.slice(nameStart, nameEnd);
		const bodyEnd = text.indexOf(CLOSING, nameEnd);
		const body = bodyEnd < 0 ? "" : text.slice(nameEnd + 2, bodyEnd);
		if (!FILE_NAME.test(name) || bodyEnd < 0 || /[^A-Za-z0-9+/=]/.test(body)) throw new BadInput(`the block of a file at byte ${at} is not of its form`);
		if (name === "blobs") throw new BadInput("the report has a file in the place of the directory blobs");
		if (files.has(name) || files.size >= FILES_MAX) throw new BadInput(`the report has the file ${name} twice, or too many files`);
		const bytes = decodeBase64(body);
		if (bytes === null) throw new BadInput(`the block of the file ${name} is not base64`);
		files.set(name, new MemorySource(bytes));
		at = bodyEnd + 9;
	}
	return {
		files,
		statement: data.subarray(start, end),
		sha256: hash.hex()
	};
}
/** Judge the bundle, then the page and the statement about it. */
async function judgeParts(name, parts, options, examiners) {
	const { tally, heads, rules, keyHistory } = await examineBundle(new FileMap(name, parts.files), options, examiners);
	const failed = tally.hasFailed();
	const { records, chains } = tally;
	tally.countDone(CHECK);
	if (parts.statement.every((byte) => byte === 32 || byte >= 9 && byte <= 13)) {
		tally.fail(CHECK, "SIG_MISSING", "the report is not signed", STATEMENT_PLACE);
		return tally;
	}
	let statement;
	try {
		const dump = (found) => dumpBlock(found);
		statement = readExactly(parts.statement, "the statement's block", readContent, dump, (found) => dumpBlock(found, heads.keys()));
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		tally.fail(CHECK, error.code, error.message, STATEMENT_PLACE);
		return tally;
	}
	const { content } = statement;
	const text = (key) => content.get(key);
	if (text("sha256") !== parts.sha256) tally.fail(CHECK, "ARTIFACT_HASH_MISMATCH", `the file has the digest ${parts.sha256}; its statement says another`, PAGE);
	const stated = content.get("heads");
	const statedHeads = [...stated].map(([chain, head]) => ({
		chain,
		count: toCount(countOf(head, "count"))
	}));
	checkSigners({
		statement,
		at: text("made_at"),
		heads: statedHeads
	}, rules, tally, keyHistory, {
		check: CHECK,
		name: STATEMENT
	});
	for (const [chain, head] of stated) {
		const actual = heads.get(chain);
		if (actual === void 0) tally.fail(CHECK, "CHAIN_MISSING", "the statement lists this chain, and it is not in the report", place(chain));
		else if (countOf(head, "count") !== BigInt(actual.count) || head.get("hash") !== actual.hash) tally.fail(CHECK, "HEAD_MISMATCH", `the statement says another end; ${actual.count} records are here`, place(chain));
	}
	for (const chain of heads.keys()) if (!stated.has(chain)) tally.fail(CHECK, "HEAD_MISMATCH", "the statement does not list this chain", place(chain));
	const verdict = content.get("verdict");
	const status = verdict.get("status");
	if (countOf(verdict, "records") !== BigInt(records) || countOf(verdict, "chains") !== BigInt(chains)) {
		const words = `the statement counts other records; ${records} in ${chains} chains are here`;
		tally.fail(CHECK, "CLAIM_UNPROVEN", words, STATEMENT_PLACE);
	} else if (failed && status !== "failed") tally.fail(CHECK, "CLAIM_UNPROVEN", `the statement says ${status}, and the records fail`, STATEMENT_PLACE);
	tally.notes.set(CHECK, `${status} as signed at ${text("made_at")}`);
	return tally;
}
/** The text of the statement's block. A browser would end it at `<\/SCRIPT >`: so it has no `<`. */
function dumpBlock(statement, chains) {
	const content = orderKeys(statement.content, CONTENT_KEYS);
	content.set("verdict", orderKeys(content.get("verdict"), VERDICT_KEYS));
	content.set("heads", orderHeads(content.get("heads"), chains));
	return compactJson(statementFields$1({
		...statement,
		content
	})).replaceAll("<", "\\u003c");
}
/** Read a statement. Raises `BadInput` unless it states exactly what a report states. */
function readContent(data) {
	const statement = readStatement(data);
	const { purpose, content } = statement;
	const require = (holds, words) => {
		if (!holds) throw new BadInput(words);
	};
	require(purpose === "report", "the statement is not for a report");
	const version = content.get("v");
	require(hasExactly(content, CONTENT_KEYS), `the statement does not state exactly ${CONTENT_KEYS.join(", ")}`);
	require(isInteger(version) && version.text === "1", "the statement is of another version");
	require([
		"subject",
		"made_at",
		"sha256"
	].map((key) => content.get(key)).every((value) => typeof value === "string"), "the statement does not name its subject and its time");
	require(HEX64.test(content.get("sha256")), "the statement does not name the digest of the page");
	for (const key of ["since", "until"]) {
		const value = content.get(key);
		require(value === null || typeof value === "string", `${key} of the statement is a time or null`);
	}
	const verdict = content.get("verdict");
	require(isObject(verdict) && hasExactly(verdict, VERDICT_KEYS), "the verdict of the statement is not of its form");
	for (const key of ["status", "level"]) require(typeof verdict.get(key) === "string", "the verdict of the statement is not of its form");
	for (const key of ["records", "chains"]) require(countOf(verdict, key) !== null, "the verdict of the statement is not of its form");
	const heads = content.get("heads");
	require(isObject(heads) && [...heads.values()].every(isHead), "the heads of the statement are not of their form");
	return statement;
}
function hasExactly(object, keys) {
	return object.size === keys.length && keys.every((key) => object.has(key));
}
/** A count of records in an object; null for any other value. */
function countOf(object, key) {
	const value = isObject(object) ? object.get(key) : void 0;
	if (!isInteger(value)) return null;
	const count = BigInt(value.text);
	return count >= 0n && count < COUNT_END ? count : null;
}
function isHead(value) {
	if (!isObject(value) || !hasExactly(value, ["count", "hash"])) return false;
	const count = countOf(value, "count");
	const hash = value.get("hash");
	return count !== null && (count === 0n ? hash === null : typeof hash === "string" && HEX64.test(hash));
}
// src/verify/run/archive.ts
/** `.cap` files: a tar inside a gzip. The twin of the reading half of `aver.actions.archive`; it trusts nothing. */
var GZIP_HEADER = [
	31,
	139,
	8,
	0,
	0,
	0,
	0,
	0,
	2,
	255
];
var BLOCK = 512;
var TAR_RECORD = 10240;
var MEMBERS_MAX = 64;
var TIME_HEADER_MAX = 4096;
var TIME_HEADER = /^(?:[0-9]{1,4} [amc]time=[0-9]{1,20}(?:\.[0-9]{1,20})?\n)*$/;
/** An archive that unpacks to more bytes than the first, and to more than the second times its size, is refused. */
var RATIO_CHECKED_FROM = 64 * 1024 ** 2;
var RATIO_MAX = 250;
/** Packed bytes that the platform gets at a time: they may unpack to a thousand times as many. */
var PIECE = 16384;
/** Bytes of a tar for which there is room at first. */
var ROOM = 262144;
/** Bytes that a page unpacks at most. `aver verify` has no such limit: it puts large members into files. */
var UNPACKED_MAX = 512 * 1024 ** 2;
/** A small member; null if there is none. Raises `Unreadable` if it is larger than `limit` bytes. */
function readSmall(archive, name, limit) {
	const data = archive.members.get(name) ?? null;
	if (data !== null && data.length > limit) throw new Unreadable(`${name} is larger than ${limit} bytes`);
	return data;
}
/** Read an archive whose members are all of one of the formats. Raises `Unreadable` if it is damaged or hostile. */
async function readArchive(packed, ...formats) {
	const archive = {
		members: /* @__PURE__ */ new Map(),
		isPlain: GZIP_HEADER.every((byte, at) => packed[at] === byte)
	};
	const tar = await unpackTar(packed);
	let fitting = formats;
	let isDescribed = false;
	let at = 0;
	const take = (size) => {
		if (at + size > tar.length) throw damaged("it ends early");
		at += size;
		return tar.subarray(at - size, at);
	};
	for (;;) {
		const block = take(BLOCK);
		if (isZero(block)) break;
		const header = readHeader(block);
		if (header.type === "x" && !isDescribed) {
			checkTimeHeader(header.size, take);
			archive.isPlain = false;
			isDescribed = true;
			continue;
		}
		isDescribed = false;
		checkMember(header, archive);
		fitting = fitting.filter((names) => names.has(header.name));
		if (!fitting.length) throw new Unreadable(`${header.name} is no part of a run`);
		archive.isPlain &&= areSameBytes(block, writeHeader(header.name, header.size));
		archive.members.set(header.name, take(header.size));
		if (!isZero(take((BLOCK - header.size % BLOCK) % BLOCK))) throw new Unreadable(`there are extra bytes after the end of ${header.name}`);
	}
	if (!isZero(tar.subarray(at))) throw new Unreadable("there are extra bytes after the end of the tar");
	archive.isPlain &&= tar.length % TAR_RECORD === 0;
	return archive;
}
async function unpackTar(packed) {
	let at = 0;
	let out = new Uint8Array(ROOM);
	let size = 0;
	for await (const bytes of unpackGzip(async () => at < packed.length ? packed.subarray(at, at = Math.min(at + PIECE, packed.length)) : null)) {
		if (size + bytes.length > Math.max(RATIO_CHECKED_FROM, packed.length * RATIO_MAX)) throw new Unreadable(`it unpacks to more than ${RATIO_MAX} times its size`);
		if (size + bytes.length > UNPACKED_MAX) throw new NotJudged("it unpacks to more than a page can hold; run: aver verify FILE");
		if (size + bytes.length > out.length) {
			const larger = new Uint8Array(Math.max(2 * out.length, size + bytes.length));
			larger.set(out.subarray(0, size));
			out = larger;
		}
		out.set(bytes, size);
		size += bytes.length;
	}
	return out.subarray(0, size);
}
function damaged(words) {
	return new Unreadable(`not a tar in gzip, or a damaged one: ${words}`);
}
function isZero(data) {
	return data.every((byte) => byte === 0);
}
/** Read a header as Python's tarfile does. */
function readHeader(block) {
	let sum = 0;
	let signed = 0;
	block.forEach((byte, at) => {
		const value = at >= 148 && at < 156 ? 32 : byte;
		sum += value;
		signed += value > 127 ? value - 256 : value;
	});
	const stored = readNumber(block.subarray(148, 156));
	if (stored !== sum && stored !== signed) throw damaged("bad checksum");
	for (const [start, end] of [
		[100, 108],
		[108, 116],
		[116, 124],
		[136, 148],
		[329, 337],
		[337, 345]
	]) readNumber(block.subarray(start, end));
	for (const [start, end] of [
		[157, 257],
		[265, 297],
		[297, 329]
	]) readText(block.subarray(start, end));
	let name = readText(block.subarray(0, 100));
	const type = String.fromCharCode(block[156]);
	const prefix = readText(block.subarray(345, 500));
	if (prefix && ![
		"L",
		"K",
		"S"
	].includes(type)) name = `${prefix}/${name}`;
	return {
		name,
		size: readNumber(block.subarray(124, 136)),
		type
	};
}
function readText(field) {
	const end = field.indexOf(0);
	try {
		return new TextDecoder("utf-8", {
			fatal: true,
			ignoreBOM: true
		}).decode(end < 0 ? field : field.subarray(0, end));
	} catch {
		throw damaged("a name is not UTF-8");
	}
}
/** A number in octal digits as Python reads them, or in base 256. */
function readNumber(field) {
	if (field[0] === 128 || field[0] === 255) {
		let value = 0n;
		for (const byte of field.subarray(1)) value = (value << 8n) + BigInt(byte);
		return Number(field[0] === 255 ? value - (1n << BigInt(8 * (field.length - 1))) : value);
	}
	const text = readText(field);
	if (/[^\x00-\x7f]/.test(text)) throw damaged("invalid header");
	const digits = text.replace(/^[\t-\r\x1c-\x20]+|[\t-\r\x1c-\x20]+$/g, "") || "0";
	const match = /^([-+]?)(?:0[oO]_?)?([0-7]+(?:_[0-7]+)*)$/.exec(digits);
	if (match === null) throw damaged("invalid header");
	const value = Number.parseInt(match[2].replaceAll("_", ""), 8);
	return match[1] === "-" ? -value : value;
}
function checkTimeHeader(size, take) {
	if (!(size >= 0 && size <= TIME_HEADER_MAX)) throw new Unreadable("an extended header is too large");
	const text = new TextDecoder("latin1").decode(take(size + (BLOCK - size % BLOCK) % BLOCK).subarray(0, size));
	if (!TIME_HEADER.test(text)) throw new Unreadable("an extended header says more than times");
}
function checkMember(header, archive) {
	if (header.type !== "0") throw new Unreadable(`${header.name} is not a plain file`);
	header.name.split("/").forEach(checkFileName);
	if (archive.members.has(header.name)) throw new Unreadable(`${header.name} is in it twice`);
	if (archive.members.size >= MEMBERS_MAX) throw new Unreadable(`it has more than ${MEMBERS_MAX} members`);
	if (header.size < 0) throw new Unreadable(`${header.name} has no size`);
}
/** The header that Aver writes. */
function writeHeader(name, size) {
	const block = new Uint8Array(BLOCK);
	const put = (text, at) => block.set(encoder.encode(text).subarray(0, BLOCK - at), at);
	put(name.slice(0, 100), 0);
	put("0000644\x000000000\x000000000\0", 100);
	put(`${size.toString(8).padStart(11, "0")}\0${"0".repeat(11)}\0`, 124);
	put("        0", 148);
	put("ustar\x0000", 257);
	put(`${block.reduce((total, byte) => total + byte, 0).toString(8).padStart(6, "0")}\0`, 148);
	return block;
}
// src/verify/run/evidence.ts
/** The evidence behind a run's gate decisions: `evidence.jsonl`. The twin of the reading half of `aver.actions.run_evidence`. */
var EVIDENCE_FILE = "evidence.jsonl";
var CAPSULE_LINE_MAX = 1048576;
var BLOB_LINE_MAX = 8388608;
/** The maximum length of the seal and the chain name together. */
var SEAL_MAX = 16384;
var NEEDS_MAX = 1e5;
var DIGEST_SHOWN = 200;
var LINE_KEYS = [
	"chain",
	"canonical",
	"hash",
	"signature",
	"signature_pq",
	"signed_at",
	"signed_by"
];
/** Read a line without its line feed. Raises `Unreadable` if it is not the line of a capsule. */
function readCapsuleLine(content) {
	if (!isObject(content) || content.size !== LINE_KEYS.length || !LINE_KEYS.every((key) => content.has(key))) throw new Unreadable("a line of capsules has a chain, a seal and its canonical text");
	const canonical = content.get("canonical");
	const parts = typeof canonical === "string" ? [canonical] : canonical;
	if (!Array.isArray(parts) || parts.length > 2 || !parts.every((part) => typeof part === "string")) throw new Unreadable("a capsule's canonical text is one text, or two");
	const [chain, , ...seal] = LINE_KEYS.map((key) => content.get(key));
	if (typeof chain !== "string" || !seal.every((value) => typeof value === "string")) throw new Unreadable("the parts of a seal are strings");
	const written = chain + seal.join("");
	if (codePoints(written) > SEAL_MAX || !isPrintable(written)) throw new Unreadable("its seal holds what no seal holds");
	const [hash = "", signature = "", signature_pq = "", signed_at = "", signed_by = ""] = seal;
	return {
		chain,
		parts,
		hasAction: parts.length === 2,
		rebuild: (action) => new Sealed(parts.join(action ?? ""), {
			hash,
			signature,
			signature_pq,
			signed_at,
			signed_by
		}, chain)
	};
}
/** The approvals and blobs that the decisions of a run rest on. */
var EvidenceNeeds = class {
	asked = /* @__PURE__ */ new Set();
	blobs = /* @__PURE__ */ new Set();
	/** Add the needs of a decision. Records of another kind need nothing. Raises `BadInput` for one that is no JSON. */
	add(record) {
		if (record.kind !== "gate.decision") return;
		const result = at(record.content, "outcome", "result");
		if (!isObject(result)) return;
		if (["human_review", "human_approved"].includes(result.get("decision")) && this.asked.size < NEEDS_MAX) this.asked.add(cutText(String(result.get("digest")), DIGEST_SHOWN));
		for (const part of ["basis", "action"]) {
			if (this.blobs.size >= NEEDS_MAX) break;
			for (const { digest } of blobReferences(result.get(part))) this.blobs.add(digest);
		}
	}
};
/** Gives examiners the records and blobs in a run's files. */
var RunFilesReader = class {
	chains = /* @__PURE__ */ new Map();
	blobs = /* @__PURE__ */ new Map();
	constructor(home) {
		this.home = home;
	}
	/** Add a record of the gate or of approvals. */
	addRecord(record, { hasAction }) {
		const name = record.chain ?? "";
		const stored = this.chains.get(name) ?? {
			count: 0,
			hash: null,
			records: []
		};
		this.chains.set(name, stored);
		stored.count++;
		stored.hash = record.hash;
		if (!hasAction) stored.records.push(record);
	}
	/** The chains of these domains that have records here. */
	select(...domains) {
		return [...this.chains.keys()].filter((name) => domains.includes(name.split(".", 1)[0]));
	}
	async *read(chain) {
		const stored = this.chains.get(chain);
		if (stored === void 0) throw new NotFound(`the chain ${chain} is not in the run's files`);
		yield* stored.records;
	}
	async get(hash) {
		for (const { records } of this.chains.values()) {
			const found = records.find((record) => record.hash === hash);
			if (found !== void 0) return found;
		}
		return null;
	}
	async blob(digest) {
		const found = this.blobs.get(digest);
		if (found === void 0) throw new NotFound(`the blob ${digest} is not in the run's files`);
		return found;
	}
	head(chain) {
		const stored = this.chains.get(chain);
		const { ledger, tenant } = this.home;
		return stored === void 0 ? null : {
			ledger,
			tenant,
			chain,
			count: stored.count,
			hash: stored.hash
		};
	}
};
/** The digest and the bytes of a blob. Raises `Unreadable` if they do not belong together. */
function readBlobLine(content) {
	const digest = isObject(content) ? content.get("sha256") : null;
	if (!isObject(content) || content.size !== 2 || typeof digest !== "string") throw notEvidence();
	const text = content.get("text");
	const coded = content.get("base64");
	let data;
	if (typeof text === "string") {
		if (!text.isWellFormed()) throw new Unreadable("a blob is UTF-8 text, or base64");
		data = encoder.encode(text);
	} else if (typeof coded === "string") {
		const decoded = decodeBase64(coded);
		if (decoded === null) throw new Unreadable("a blob is UTF-8 text, or base64");
		data = decoded;
	} else throw notEvidence();
	if (sha256Hex(data) !== digest) throw new Unreadable("a blob has other bytes than its digest says");
	return [digest, data];
}
function notEvidence() {
	return new Unreadable("a line of evidence is a capsule or a blob");
}
/** Judge the lines of `evidence.jsonl`, and add the records and blobs to the reader. */
function judgeEvidence(files, needs, reader, rules) {
	const tally = new Tally();
	const file = files.members.get(EVIDENCE_FILE);
	if (file === void 0) return tally;
	const { ledger, tenant } = reader.home;
	const roster = chainName("approvers", tenant);
	const approvals = chainName("approvals", tenant);
	const rosterJudge = new ChainJudge(rules, {
		chain: roster,
		identity: {
			name: roster,
			ledger,
			tenant
		},
		needsBlock: true
	});
	const fail = (code, words) => tally.fail("archive", code, words, place(null, null, EVIDENCE_FILE));
	let number = 0;
	let last = -1n;
	let unreadable = 0;
	for (const raw of readOwnLines(file, BLOB_LINE_MAX)) {
		number++;
		try {
			if (raw instanceof BadInput) throw raw;
			const content = readJson(raw);
			if (!isObject(content) || !content.has("canonical")) {
				const [digest, data] = readBlobLine(content);
				if (!needs.blobs.has(digest)) throw new BadInput(`no decision refers to the blob ${digest}`);
				if (reader.blobs.has(digest)) throw new BadInput(`the blob ${digest} is in it twice`);
				reader.blobs.set(digest, data);
				continue;
			}
			const line = readCapsuleLine(content);
			if (line.hasAction || ![roster, approvals].includes(line.chain)) throw new BadInput("the capsule is neither of the approvers nor of the approvals");
			const record = line.rebuild(null);
			reader.addRecord(record, { hasAction: false });
			if (record.chain === roster) rosterJudge.judge(record);
			else last = judgeApproval(record, last, rules, tally);
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			fail("SCHEMA_INVALID", `line ${number}: ${error.message}`);
			if (++unreadable > 1e3) {
				fail("NOT_READ", REST_UNREAD);
				break;
			}
		}
	}
	tally.merge(rosterJudge.finish());
	tally.chains += reader.select("approvals", "approvers").length;
	return tally;
}
/** Judge a record of the approvals by itself: those about other actions are missing between them. */
function judgeApproval(record, last, rules, tally) {
	const judge = new ChainJudge(rules, {
		chain: record.chain,
		start: null,
		needsBlock: true
	});
	const content = judge.judge(record);
	tally.merge(judge.finish());
	if (content === null) return last;
	const sequence = BigInt(content.get("sequence").text);
	if (sequence <= last) tally.fail("links", "SEQUENCE_GAP", "it comes twice, or after a later record", place(record.chain, sequence));
	return sequence > last ? sequence : last;
}
// src/verify/run/judge.ts
/**
* Judge a run record by record: its receipts, its capsules, its gate decisions and its proof. The twin of
* `aver.actions.verify_run`, whose text says what each check means.
*/
var ACTIONS_MAX = 1e6;
var DECISIONS_MAX = 2e5;
/** Most bytes that the lists of files in actions and decisions may have together. */
var FILES_BYTES_MAX = 33554432;
var VERDICT_RANK = /* @__PURE__ */ new Map([
	[null, 0],
	["PROOF_ONLY", 1],
	["POLICY_ENFORCED", 2],
	["FULLY_VERIFIED", 3]
]);
/** Judges lines in order: receipts and parents. */
var ReceiptJudge = class {
	trace = new Trace();
	keys = /* @__PURE__ */ new Set();
	count = 0;
	lastReceipt = null;
	ids = /* @__PURE__ */ new Set();
	last = null;
	unreadable = 0;
	unzoned = 0;
	constructor(tally, { chain = null, source = null }) {
		this.tally = tally;
		this.chain = chain;
		this.source = source;
	}
	/** Judge the next line. Returns it if it could be read. */
	take(raw) {
		const { last } = this;
		let line = null;
		try {
			if (raw instanceof BadInput) throw raw;
			line = readActionLine(raw);
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			this.unreadable++;
			this.fail("receipts", error.code, error.message);
		}
		if (line !== null) {
			const { action } = line;
			this.keys.add(line.keys);
			if (!hasZone(action.timestamp)) this.unzoned++;
			if (line.problem !== null) this.fail("receipts", "RECEIPT_MISMATCH", line.problem, action);
			if (this.ids.has(action.action_id)) this.fail("parents", "DUPLICATE_RECORD", "an action before it has the same id", action);
			this.ids.add(action.action_id);
			if (this.count === 0) {
				if (action.parent_receipt_hash !== null || action.parent_action_id !== null) this.fail("parents", "GENESIS_INVALID", "the first action names a parent", action);
			} else if (last === null) {} else if (action.parent_receipt_hash !== last.receiptHash) this.fail("parents", "CHAIN_BREAK", "its parent's receipt is not that of the action before", action);
			else if (action.parent_action_id !== last.action.action_id) this.fail("parents", "CHAIN_BREAK", "its parent's id is not that of the action before", action);
			this.lastReceipt = line.receiptHash;
			if (line.keys === RECEIPT_KEY_COUNT && line.problem === null) this.trace.take(action, line.texts);
		}
		this.last = line;
		this.count++;
		return line;
	}
	/** Judge lines one by one and yield each, or null for an unreadable one, until too many are unreadable. */
	*takeAll(lines) {
		for (const raw of lines) {
			yield this.take(raw);
			if (this.unreadable > 1e3) {
				this.fail("receipts", "NOT_READ", REST_UNREAD);
				return;
			}
			if (this.count >= ACTIONS_MAX) {
				this.fail("receipts", "NOT_READ", `it has ${ACTIONS_MAX} actions or more; the rest was not read`);
				return;
			}
		}
	}
	/** Count the checks that were made. */
	finish() {
		if (!this.count) return;
		this.tally.countDone("receipts", this.count);
		this.tally.countDone("parents", this.count);
		const covered = [...this.keys].sort((one, other) => one - other).map((count) => `over ${count} keys`).join(" and ");
		const isOwn = this.keys.size === 1 && this.keys.has(RECEIPT_KEY_COUNT);
		const zones = this.unzoned ? `; ${this.unzoned} times without a zone` : "";
		this.tally.notes.set("receipts", `${this.count} checked, ${isOwn ? "over the protocol's 12 keys" : covered || "none"}${zones}`);
	}
	fail(check, code, words, action = null) {
		const named = action === null ? "" : ` (${action.action_id})`;
		const where = this.source ? `${this.source}, ` : "";
		this.tally.fail(check, code, words, place(this.chain, null, `${where}action ${this.count}${named}`));
	}
};
/** Judges a run's chain together with its lines. */
var RunJudge = class RunJudge {
	/** The findings of this room. */
	tally = new Tally();
	capsules = new Tally();
	/** The hashes of the decisions that actions name and that were not taken yet, in that order. */
	wanted = /* @__PURE__ */ new Set();
	count = 0;
	/** How many capsules of actions there are. */
	actions = 0;
	head = null;
	seal = null;
	/** How many calls waited for a person by a framework's own means, and how many went on after such a wait. */
	waiting = 0;
	waited = 0;
	gateJudge = null;
	hasGateChain = false;
	gated = [];
	unmarked = 0;
	enforced = [];
	decided = /* @__PURE__ */ new Map();
	gateCount = 0;
	gateHead = null;
	filesLeft = FILES_BYTES_MAX;
	isOverfull = false;
	/** `isValid`: the records were judged before, and each holds. */
	constructor(rules, runId, identity, { storedAs = "", isValid = false } = {}) {
		this.rules = rules;
		this.runId = runId;
		this.identity = identity;
		this.isValid = isValid;
		this.name = storedAs || identity.chain;
		this.receipts = new ReceiptJudge(this.tally, { chain: this.name });
		this.judge = isValid ? null : this.newChainJudge(identity.chain);
	}
	newChainJudge(chain) {
		const identity = {
			name: chain,
			ledger: this.identity.ledger,
			tenant: this.identity.tenant
		};
		return new ChainJudge(this.rules, {
			chain,
			identity,
			needsBlock: true
		});
	}
	/** Whether so many records cannot be read that the caller must stop. Then a finding says so. */
	stopsReading() {
		return (this.judge?.stopsReading() ?? false) || (this.gateJudge?.stopsReading() ?? false);
	}
	/** The content of a record that holds; null for another. */
	static takeRecord(judge, record) {
		if (judge === null) return record.content;
		const before = countFailures(judge.tally);
		const content = judge.judge(record);
		return countFailures(judge.tally) > before ? null : content;
	}
	/** Judge the next record of the chain. `text` is the sealed form of the action of `line`. */
	take(record, line, text) {
		const content = RunJudge.takeRecord(this.judge, record);
		const at = this.count;
		const before = this.head;
		this.count = at + 1;
		this.head = record.hash;
		if (content === null) return;
		const kind = readKind(content);
		try {
			if (this.seal !== null) this.fail("sealed", "STATE_VIOLATION", "a record follows the run's seal", at);
			else if (kind === "action" && at > 0) this.takeAction(content, line, text, at);
			else if (kind === "run.seal" && at > 0) this.takeSeal(content, at, before);
			else if (kind === "run.open" && at === 0) {
				const result = content.get("outcome").get("result");
				const runId = result instanceof Map ? result.get("run_id") : void 0;
				if (runId === void 0) throw new BadInput("it lacks keys of a record of its kind");
				if (runId !== this.runId) this.fail("sealed", "CHAIN_IDENTITY", "the chain was opened for another run", at);
			} else this.fail("sealed", "STATE_VIOLATION", `a record of kind ${kind.slice(0, 40)} does not belong here`, at);
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			this.fail("sealed", "SCHEMA_INVALID", error.message, at);
		}
	}
	takeSeal(content, at, before) {
		const { ledger, tenant, chain } = this.identity;
		const seal = readRunSeal(content, {
			ledger,
			tenant,
			chain
		});
		this.seal = seal;
		this.tally.countDone("sealed");
		if (seal.runId !== this.runId) this.fail("sealed", "CHAIN_IDENTITY", "the seal is of another run", at);
		if (!equalHeads(seal.head, {
			ledger,
			tenant,
			chain,
			count: at,
			hash: before
		})) this.fail("sealed", "TRUNCATED", "the seal says another head of the chain than it has", at);
	}
	takeAction(content, line, text, at) {
		this.actions++;
		if (this.receipts.count < this.actions) this.fail("sealed", "TRUNCATED", "there is no line for it", at);
		if (line === null || text === null) return;
		let { action } = line;
		const { fields, receiptHash, gate: mark } = readSealedAction(content);
		if (canonicalJson(fields) !== text) {
			this.fail("sealed", "RECEIPT_MISMATCH", "the line is not the action that was sealed", at);
			return;
		}
		if (receiptHash !== line.receiptHash) this.fail("sealed", "RECEIPT_MISMATCH", "the capsule has another receipt than the line", at);
		if (action.metadata?.has("waiting")) this.waiting++;
		const refs = readBlock(content)?.get("refs");
		if (isObject(refs) && refs.has("waited")) this.waited++;
		this.enforced.push(action.policy_verdict === "POLICY_ENFORCED");
		const files = action.metadata?.get("files_affected");
		if (mark !== null) {
			if (this.canKeep(files, this.gated.length)) {
				const metadata = files === void 0 || files === null ? null : /* @__PURE__ */ new Map([["files_affected", files]]);
				action = {
					...action,
					metadata
				};
				const isFirstUse = readBlock(content)?.get("key") === `gate-use:${mark.gateId}`;
				this.gated.push({
					number: at - 1,
					action,
					mark,
					isFirstUse
				});
				this.wanted.add(mark.record);
			}
			return;
		}
		if (action.gate_decision !== null || action.gate_score !== null) this.unmarked++;
		if (action.policy_verdict === "POLICY_ENFORCED" || action.policy_verdict === "FULLY_VERIFIED") this.fail("gates", "CLAIM_UNPROVEN", `it says ${action.policy_verdict}, but names no decision of the gate`, at);
	}
	/** Whether one more action or decision, with the list of files in it, may stay in memory. If not, report it. */
	canKeep(files, count) {
		if (isTrue(files)) this.filesLeft -= encoder.encode(canonicalJson(files ?? null)).length;
		if (this.filesLeft >= 0 && count < DECISIONS_MAX) return true;
		if (!this.isOverfull) {
			this.isOverfull = true;
			const words = `it has more than ${DECISIONS_MAX} decisions, or ${FILES_BYTES_MAX} bytes of files in them`;
			this.tally.fail("gates", "NOT_READ", `${words}: the rest was not compared`, place(this.name));
		}
		return false;
	}
	/** Judge a record of the gate: the next of the run's own gate chain, or one of another chain. */
	takeGateRecord(record, { isOwn }) {
		let content;
		if (isOwn && this.seal !== null && this.seal.gates !== null) {
			if (!this.hasGateChain) {
				this.hasGateChain = true;
				this.gateJudge = this.isValid ? null : this.newChainJudge(this.seal.gates.chain);
			}
			this.gateCount++;
			this.gateHead = record.hash;
			content = RunJudge.takeRecord(this.gateJudge, record);
		} else if (this.isValid) content = record.content;
		else {
			const judge = new ChainJudge(this.rules, {
				chain: record.chain,
				start: null,
				needsBlock: true
			});
			content = judge.judge(record);
			if (judge.tally.hasFailed()) content = null;
			this.capsules.merge(judge.finish());
			if (!this.wanted.has(record.hash)) this.tally.fail("gates", "STATE_VIOLATION", "the run refers to no such record", place(record.chain));
		}
		if (content !== null) {
			const decision = readDecision(content);
			if (decision === null) return;
			if (this.canKeep(decision.files, this.decided.size)) this.decided.set(record.hash, decision);
		}
		this.wanted.delete(record.hash);
	}
	/** Compare actions with their decisions. Returns the numbers of the actions that no decision allows. */
	checkDecisions(isComplete) {
		const unproven = /* @__PURE__ */ new Set();
		const used = /* @__PURE__ */ new Set();
		let [observed, reported] = [0, 0];
		for (const { number, action, mark, isFirstUse } of this.gated) {
			const decided = this.decided.get(mark.record) ?? null;
			const problem = gateProblem(action, mark, decided, isFirstUse && !used.has(mark.record));
			used.add(mark.record);
			if (problem !== null || decided === null || !allows(decided) || decided.isObserved) unproven.add(number);
			if (decided?.isObserved) observed++;
			if (problem !== null) this.fail("gates", problem[0], `${action.action_id}: ${problem[1]}`, number + 1);
			else if (mark.hasClientAnswer && decided !== null) {
				reported++;
				const words = `${action.action_id}: only the client says that a person agreed`;
				this.tally.warn("gates", "UNCONFIRMED", words, place(this.name, number + 1));
			}
		}
		const count = this.gated.length;
		if (count) this.tally.countDone("gates", count);
		const approved = this.gated.filter(({ mark }) => mark.decision === "human_approved").length;
		const notes = [
			...approved ? [`${approved} approved by a human`] : [],
			...reported ? [`${reported} on the word of the client`] : [],
			...observed ? [`${observed} in the mode observe: nothing was held back`] : []
		];
		if (notes.length) this.tally.notes.set("gates", `${count} checked, ${notes.join(", ")}`);
		const words = `${this.wanted.size} decisions that actions name are not here`;
		if (this.wanted.size && isComplete) this.tally.fail("gates", "ARTIFACT_MISSING", words, place(this.name));
		else if (this.wanted.size) this.tally.skip("gates", words, { matters: true });
		if (this.unmarked) {
			const claim = `${this.unmarked} actions claim a decision of the gate without naming its record`;
			this.tally.warn("gates", "CLAIM_UNPROVEN", claim, place(this.name));
		}
		return unproven;
	}
	/** Return the findings. With `isComplete`, the run must be sealed, and everything it refers to must be here. */
	finish({ isComplete }) {
		const taken = this.tally;
		this.receipts.finish();
		this.tally = new Tally();
		if (this.actions) taken.countDone("sealed", this.actions);
		const unproven = this.checkDecisions(isComplete);
		skipAnswers(this.tally, this.waiting, this.waited, this.waited > 0);
		if (this.judge !== null) this.capsules.merge(this.judge.finish());
		this.capsules.chains++;
		if (this.hasGateChain) {
			if (this.gateJudge !== null) this.capsules.merge(this.gateJudge.finish());
			this.capsules.chains++;
		}
		if (this.seal === null) {
			const words = "the run is not sealed: actions may be missing at its end";
			if (isComplete) this.fail("sealed", "TRUNCATED", words, this.count);
			else this.tally.skip("sealed", words, { matters: true });
			this.tally.skip("proof", "the run is not sealed, so nothing is stated about it", { matters: false });
		} else this.checkSeal(this.seal, unproven);
		return {
			records: taken,
			capsules: this.capsules,
			ending: this.tally
		};
	}
	checkSeal(seal, unproven) {
		const { receipts } = this;
		const at = seal.head.count;
		const actions = Number(at) - 1;
		if (!(seal.numActions === actions && actions === receipts.count)) {
			const words = `the seal counts ${seal.numActions} actions; ${actions} capsules and ${receipts.count} lines are here`;
			this.fail("sealed", "TRUNCATED", words, at);
		} else if (seal.finalReceiptHash !== receipts.lastReceipt) this.fail("sealed", "RECEIPT_MISMATCH", "the seal names another last receipt", at);
		const areAllEnforced = this.enforced.length > 0 && this.enforced.every((isSaid, index) => isSaid && !unproven.has(index));
		const isProved = seal.statement !== null;
		const earned = areAllEnforced ? isProved ? "FULLY_VERIFIED" : "POLICY_ENFORCED" : isProved ? "PROOF_ONLY" : null;
		const rank = (verdict) => VERDICT_RANK.get(verdict) ?? 0;
		if (seal.policyVerdict !== earned && rank(seal.policyVerdict) > rank(earned)) this.fail("gates", "CLAIM_UNPROVEN", `the seal says ${seal.policyVerdict}; the records support only ${earned}`, at);
		if (seal.gates !== null && (this.gateCount !== seal.gates.count || this.gateHead !== seal.gates.hash)) {
			const words = `the seal counts ${seal.gates.count} records of the gate; ${this.gateCount} are here`;
			this.fail("gates", "TRUNCATED", words, at);
		}
		if (seal.statement === null) {
			this.tally.skip("proof", "the run was sealed without one", { matters: false });
			return;
		}
		this.tally.countDone("proof", receipts.count);
		if (seal.statement.runId !== this.runId) this.fail("proof", "PROOF_INVALID", "the statement is about another run", at);
		const problem = traceProblem(seal.statement, receipts.trace);
		if (problem !== null) this.fail("proof", "PROOF_INVALID", problem, at);
	}
	fail(check, code, words, at) {
		this.tally.fail(check, code, words, place(this.name, at));
	}
};
/** Say that persons were asked by a framework's own means, and that their answers are not in these records. */
function skipAnswers(tally, waiting, waited, matters) {
	if (!waiting && !waited) return;
	const words = `${waiting} calls waited for a person by the framework's own means, and ${waited} went on`;
	tally.skip("answers", `${words}: the person's answers are not in these records`, { matters });
}
function countFailures(tally) {
	let count = 0;
	for (const counted of tally.counts.values()) if (counted.status === "failed") count += counted.count;
	return count;
}
function allows(decided) {
	return decided.decision === "pass" || decided.decision === "human_approved";
}
/** Why an action does not fit the decision that it names, as a code and words; null if it fits. */
function gateProblem(action, mark, decided, isFirstUse) {
	if (decided === null) return null;
	const { mismatch, isConclusive } = compareWithDecision(action, mark, decided);
	const saysEnforced = action.policy_verdict === "POLICY_ENFORCED";
	if (mismatch !== null) return ["EVIDENCE_INVALID", `it differs from the gated: ${mismatch}`];
	if (!isFirstUse) return ["REPLAY", "its decision was used before"];
	if (decided.isObserved) return saysEnforced ? ["CLAIM_UNPROVEN", "it says that policy was enforced; the gate only observed"] : null;
	if (allows(decided)) {
		if (isConclusive || !saysEnforced) return null;
		return ["CLAIM_UNPROVEN", "it says that policy was enforced; only its type matches"];
	}
	if (action.success && !mark.hasClientAnswer) return ["ROLE_POLICY_VIOLATION", `it was done, though the gate said ${decided.decision}`];
	return saysEnforced ? ["CLAIM_UNPROVEN", `it says that policy was enforced; the gate said ${decided.decision}`] : null;
}
// src/verify/run/files.ts
/** Judge a sealed run by its files in a `.cap`. The twin of `aver.actions.verify_files`, with the same six steps. */
var ARCHIVE_CHECK = "archive";
var MANIFEST$1 = "manifest.json";
var HEAD = "head.json";
var PROOF$1 = "proof.json";
var COMMITMENTS = "commitments.json";
var ACTIONS$1 = "actions.jsonl";
var CAPSULES = "capsules.jsonl";
var LISTED = [
	PROOF$1,
	COMMITMENTS,
	ACTIONS$1,
	CAPSULES
];
var MEMBER_ORDER = [
	MANIFEST$1,
	HEAD,
	...LISTED,
	EVIDENCE_FILE
];
var SMALL_FILE_MAX = 1048576;
var PROOF_TYPE = "recomputation";
var EXAMINED_MAX = 64;
var CHAINS_MAX = 1e4;
/** Read a manifest. Raises `BadInput` if Aver would not write exactly this content. */
function readManifest(data) {
	const keys = [...[
		"schema",
		"protocol_version",
		"run_id",
		"head",
		"created_at",
		"num_actions",
		"final_receipt_hash"
	], ...[
		"policy_verdict",
		"proof_type",
		"files"
	]];
	if (!isObject(data) || data.size !== keys.length || !keys.every((key) => data.has(key))) throw new BadInput("the manifest is not whole");
	const get = (key) => data.get(key);
	if (get("schema") !== "aver_cap_v1" || get("protocol_version") !== "0.4.0") throw new BadInput("the manifest is of another schema or protocol");
	const listed = get("files");
	if (!isObject(listed)) throw new BadInput("the manifest is not whole");
	const files = /* @__PURE__ */ new Map();
	for (const [name, digest] of listed) {
		if (!isObject(digest) || digest.size !== 2 || !digest.has("sha256") || !digest.has("size")) throw new BadInput("the manifest is not whole");
		files.set(name, {
			sha256: digest.get("sha256"),
			size: digest.get("size")
		});
	}
	const head = readHead(get("head"));
	const type = get("proof_type");
	const names = [...files.keys()].filter((name) => name !== EVIDENCE_FILE);
	if (type !== null && type !== PROOF_TYPE || names.length !== LISTED.length || !LISTED.every((name) => files.has(name))) throw new BadInput("the manifest says more or less than a manifest does");
	const [runId, createdAt, final, count] = [
		"run_id",
		"created_at",
		"final_receipt_hash",
		"num_actions"
	].map(get);
	const hasReceipt = typeof final === "string" || isInteger(count) && count.value === 0;
	if (typeof runId !== "string" || typeof createdAt !== "string" || !hasReceipt) throw new BadInput("the manifest does not name the run, its time and its last receipt");
	if (!isInteger(count)) throw new BadInput("the manifest does not count the run's actions");
	return {
		runId,
		head,
		createdAt,
		numActions: count,
		finalReceiptHash: final ?? null,
		policyVerdict: get("policy_verdict"),
		isProved: type === PROOF_TYPE,
		files
	};
}
/** `proof.json` and `commitments.json`, which follow from the seal of the run. */
function sealDocuments(seal, head) {
	const number = (value) => new JsonNumber(String(value));
	const { statement, gates } = seal;
	const one = (named) => /* @__PURE__ */ new Map([
		["chain", named.chain],
		["count", number(named.count)],
		["hash", named.hash]
	]);
	const proof = /* @__PURE__ */ new Map([
		["v", number(1)],
		["proof_type", null],
		["statement", null],
		["constraints", null]
	]);
	const commitments = /* @__PURE__ */ new Map([
		["v", number(1)],
		["rows", null],
		["capsules", one(head)],
		["gates", gates === null ? null : one(gates)]
	]);
	if (statement !== null) {
		proof.set("proof_type", PROOF_TYPE);
		proof.set("statement", statementFields(statement));
		proof.set("constraints", new Map(Object.entries(CONSTRAINTS)));
		commitments.set("rows", /* @__PURE__ */ new Map([
			["air_id", AIR_ID],
			["tree", "rfc6962"],
			["hash", "sha256"],
			["row_width", number(55)],
			["count", number(statement.numActions)],
			["root", statement.rowRoot]
		]));
	}
	return /* @__PURE__ */ new Map([[PROOF$1, encoder.encode(dumpDocument(proof))], [COMMITMENTS, encoder.encode(dumpDocument(commitments))]]);
}
/** The verdict on a sealed run. `files` are its members, which may be incomplete or hostile. */
async function judgeFiles(name, files, options, examiners) {
	const archive = new Tally();
	archive.countDone(ARCHIVE_CHECK);
	let tally = new Tally();
	const fail = (code, words) => archive.fail(ARCHIVE_CHECK, code, words, place(null, null, MANIFEST$1));
	let found = null;
	try {
		const raw = readSmall(files, MANIFEST$1, SMALL_FILE_MAX);
		if (raw === null) fail("ARTIFACT_MISSING", "there is no manifest");
		else {
			let data = null;
			const manifest = readExactly(raw, "the manifest", (given) => readManifest(data = given), () => dumpDocument(data));
			if (manifest.head.chain !== runChain(manifest.runId)) fail("CHAIN_IDENTITY", "the manifest names a chain that is not the run's");
			found = {
				manifest,
				raw
			};
		}
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		fail(error.code, error.message);
	}
	if (found !== null) tally = await new RunFilesJudge(files, found.manifest, found.raw, options, archive).judge(examiners);
	tally.merge(archive);
	tally.skip("meta", "only this run was verified, not the ledger it is from", { matters: false });
	return conclude(name, tally, "signature", [
		...CHECKS,
		...RUN_CHECKS,
		ARCHIVE_CHECK
	]);
}
/** Judges the files against the manifest. Findings about the files themselves go to `archive`. */
var RunFilesJudge = class {
	needs = new EvidenceNeeds();
	constructor(files, manifest, raw, options, archive) {
		this.files = files;
		this.manifest = manifest;
		this.raw = raw;
		this.options = options;
		this.archive = archive;
		const retired = retirementsByTime(options.ring, options.ed25519);
		this.rules = plainRules(options.ring, options.ed25519, {
			retired,
			requirePq: options.requirePq ?? false
		});
		this.reader = new RunFilesReader(manifest.head);
	}
	async judge(examiners) {
		const here = [...this.files.members.keys()];
		const expected = MEMBER_ORDER.filter((name) => [MANIFEST$1, HEAD].includes(name) || this.manifest.files.has(name));
		for (const name of expected) if (!here.includes(name)) this.fail("ARTIFACT_MISSING", `${name} is not here`, name);
		for (const name of here) if (!expected.includes(name)) this.fail("SCHEMA_INVALID", `${name} is no part of this run`, name);
		const inOrder = expected.filter((name) => here.includes(name)).join();
		if (!this.files.isPlain || here.filter((name) => expected.includes(name)).join() !== inOrder) this.fail("NOT_CANONICAL", "the archive is not packed as Aver packs it", MANIFEST$1);
		const tally = await this.judgeRun();
		await this.prefetch(EVIDENCE_FILE);
		tally.merge(judgeEvidence(this.files, this.needs, this.reader, this.rules));
		await this.examine(examiners, tally);
		for (const [name, { sha256, size }] of this.manifest.files) {
			const file = this.files.members.get(name);
			if (file === void 0) continue;
			if (sha256Hex(file) !== sha256 || !equalJson(size, new JsonNumber(String(file.length)))) this.fail("ARTIFACT_HASH_MISMATCH", "the file has other bytes than the manifest says", name);
		}
		this.checkHead();
		return tally;
	}
	fail(code, words, name) {
		this.archive.fail(ARCHIVE_CHECK, code, words, place(null, null, name));
	}
	/** Ask the platform about the signatures of a file's lines before they are judged one by one. */
	async prefetch(name) {
		const records = [];
		for (const raw of readOwnLines(this.files.members.get(name) ?? /* @__PURE__ */ new Uint8Array(), CAPSULE_LINE_MAX)) try {
			if (!(raw instanceof BadInput)) records.push(readCapsuleLine(readJson(raw)).rebuild(null));
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
		}
		await this.options.ed25519.prefetch(records.flatMap((record) => [...ChainJudge.questions(this.rules, record)]));
	}
	async judgeRun() {
		const { manifest } = this;
		const tally = new Tally();
		const judge = new RunJudge(this.rules, manifest.runId, manifest.head);
		await this.prefetch(CAPSULES);
		const last = this.takeLines(judge);
		const { records, capsules, ending } = judge.finish({ isComplete: true });
		for (const part of [
			records,
			capsules,
			ending
		]) tally.merge(part);
		if (manifest.head.count !== judge.count || manifest.head.hash !== judge.head) {
			const words = `the manifest says ${manifest.head.count} capsules, or another head; ${judge.count} are here`;
			this.fail("TRUNCATED", words, MANIFEST$1);
		}
		const { seal } = judge;
		if (seal === null) return tally;
		const isSame = manifest.numActions.value === seal.numActions && manifest.finalReceiptHash === seal.finalReceiptHash && manifest.policyVerdict === seal.policyVerdict && manifest.isProved === (seal.statement !== null);
		if (last !== null && (!isSame || manifest.createdAt !== last.signed_at)) this.fail("ROLLBACK", "the manifest says something else than the run's seal", MANIFEST$1);
		for (const [name, document] of sealDocuments(seal, manifest.head)) {
			const raw = readSmall(this.files, name, SMALL_FILE_MAX);
			if (raw !== null && !areSameBytes(raw, document)) this.fail("PROOF_INVALID", "it says something else than the run's seal", name);
		}
		return tally;
	}
	/** Judge actions and capsules side by side. Returns the last record of the run's chain. */
	takeLines(judge) {
		const { chain } = this.manifest.head;
		const nothing = /* @__PURE__ */ new Uint8Array();
		const actions = judge.receipts.takeAll(readOwnLines(this.files.members.get(ACTIONS$1) ?? nothing, ACTION_LINE_MAX));
		let last = null;
		let unreadable = 0;
		let number = 0;
		for (const raw of readOwnLines(this.files.members.get(CAPSULES) ?? nothing, CAPSULE_LINE_MAX)) {
			number++;
			if (judge.stopsReading()) break;
			let capsule;
			let line;
			try {
				if (raw instanceof BadInput) throw raw;
				capsule = readCapsuleLine(readJson(raw));
				line = capsule.hasAction && capsule.chain === chain ? actions.next().value ?? null : null;
			} catch (error) {
				if (!(error instanceof BadInput)) throw error;
				this.fail("SCHEMA_INVALID", `line ${number}: ${error.message}`, CAPSULES);
				if (++unreadable > 1e3) {
					this.fail("NOT_READ", REST_UNREAD, CAPSULES);
					break;
				}
				continue;
			}
			const text = line === null ? null : sealForm(line.action, line.texts);
			const record = capsule.rebuild(text);
			if (capsule.chain === chain) {
				judge.take(record, line, text);
				last = record;
				continue;
			}
			judge.takeGateRecord(record, { isOwn: judge.seal?.gates?.chain === capsule.chain });
			this.needs.add(record);
			this.reader.addRecord(record, { hasAction: capsule.hasAction });
			if (this.reader.chains.size > CHAINS_MAX) {
				this.fail("NOT_READ", `it has records of more than ${CHAINS_MAX} chains; the rest was not read`, CAPSULES);
				break;
			}
		}
		while (!actions.next().done);
		return last;
	}
	/** Examine the records of the gate and of approvals. */
	async examine(examiners, tally) {
		const names = [...this.reader.select("gate").slice(0, EXAMINED_MAX), ...this.reader.select("approvals", "approvers")];
		const chains = names.map((name) => ({
			name,
			origin: name,
			count: this.reader.chains.get(name)?.count ?? 0
		}));
		const reader = new ValidRecords(this.reader, this.rules, new Map(names.map((name) => [name, name])), new Set(tally.doubtful));
		const { ledger, tenant } = this.manifest.head;
		const isComplete = this.manifest.files.has(EVIDENCE_FILE);
		await examine$1(examiners, {
			reader,
			rules: this.rules,
			ledger,
			tenant,
			chains,
			isComplete,
			isSingle: true
		}, tally);
	}
	checkHead() {
		const { manifest } = this;
		let raw;
		let statement;
		try {
			raw = readSmall(this.files, HEAD, SMALL_FILE_MAX);
			if (raw === null) return;
			statement = readExactly(raw, "the head", (data) => readStatement(data, "head"), (found) => dumpDocument(statementFields$1(found)));
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			this.fail(error.code, error.message, HEAD);
			return;
		}
		const number = (value) => new JsonNumber(String(value));
		const content = /* @__PURE__ */ new Map([
			["v", number(1)],
			["run_id", manifest.runId],
			["ledger", manifest.head.ledger],
			["tenant", manifest.head.tenant],
			["chain", manifest.head.chain],
			["count", number(manifest.head.count)],
			["hash", manifest.head.hash],
			["num_actions", manifest.numActions],
			["final_receipt_hash", manifest.finalReceiptHash],
			["manifest_sha256", sha256Hex(this.raw)]
		]);
		if (statement.purpose !== "cap" || !equalJson(statement.content, content)) this.fail("ARTIFACT_HASH_MISMATCH", "the head that was signed is not that of this manifest", HEAD);
		const results = checkStatement(statement, this.rules.ring, this.rules.ed25519);
		if (!results.length) this.fail("SIG_MISSING", "the head is not signed", HEAD);
		for (const { by, key, outcome } of results) {
			const role = key === null ? null : roleOf(this.rules, key);
			const retired = key === null ? null : this.rules.retired.get(key.ed25519)?.retiredAt ?? null;
			if (outcome === "unknown") {
				const words = `the head was signed by ${by}, whose key is not known here`;
				this.archive.add({
					check: "signature",
					status: "not_checked",
					code: "UNKNOWN_SIGNER",
					words,
					place: place(null, null, HEAD)
				});
			} else if (outcome !== "valid") this.fail("SIG_INVALID", `the signature of the head is not ${by}'s`, HEAD);
			else if (role !== null && !role.mayAttest) this.fail("KEY_MISMATCH", `${by}, who signed the head, is a key of ${role}; only the ledger's key may`, HEAD);
			else if (retired !== null && manifest.createdAt > retired) this.fail("KEY_RETIRED", `${by}, who signed the head, was retired before`, HEAD);
		}
	}
};
// src/verify/run/capseal.ts
/** The `.cap` files of the public CapSeal tool. The twin of `aver.actions.capseal_files`; the best verdict is `qualified`. */
var MANIFEST = "manifest.json";
var ACTIONS = "actions.jsonl";
var ACTIONS_JSON = "actions.json";
var CAPSULE = "agent_capsule.json";
var PROOF = "proof.json";
var METADATA = "run_metadata.json";
var ROWS = "row_archive/rows.json";
var LEVELS = "row_archive/merkle_levels.json";
var CAPSEAL_MEMBERS = /* @__PURE__ */ new Set([
	MANIFEST,
	ACTIONS,
	ACTIONS_JSON,
	CAPSULE,
	PROOF,
	METADATA,
	ROWS,
	LEVELS
]);
var AVER_ONLY = [
	"head.json",
	"capsules.jsonl",
	"commitments.json",
	EVIDENCE_FILE
];
var MODULUS = 2n ** 64n - 2n ** 32n + 1n;
var LEAVES_COMPARED_MAX = 2e5;
function readDocument(archive, name) {
	const raw = readSmall(archive, name, name === CAPSULE ? ELEMENT_MAX : SMALL_FILE_MAX);
	return raw === null ? void 0 : readJson(raw);
}
/** Whether an archive was written by the CapSeal tool. One with a file that only Aver writes never was. */
function isCapseal(archive) {
	if (AVER_ONLY.some((name) => archive.members.has(name))) return false;
	if (archive.members.has(CAPSULE)) return true;
	try {
		const manifest = readDocument(archive, MANIFEST);
		return isObject(manifest) && ["run_cap_v1", "agent_cap_v1"].includes(manifest.get("schema"));
	} catch (error) {
		if (error instanceof BadInput) return false;
		throw error;
	}
}
/** The verdict on an archive of the CapSeal tool. */
async function judgeCapseal(name, archive, _options) {
	const judge = new CapsealJudge(archive);
	await judge.judge();
	const { tally, receipts } = judge;
	tally.records = receipts.count;
	receipts.finish();
	tally.skip("signature", "the public tool's format has no signatures: anyone can make such a file", { matters: true });
	tally.skip("sealed", "nothing is sealed in this format, and metadata are not bound", { matters: true });
	tally.skip("gates", "the gate's decisions are not recorded in this format", { matters: true });
	return conclude(name, tally, "signature", [
		...CHECKS,
		...RUN_CHECKS,
		ARCHIVE_CHECK
	]);
}
function limbs(digest) {
	const view = new DataView(fromHex(digest).buffer);
	return [view.getBigUint64(0, true) % MODULUS, view.getBigUint64(8, true) % MODULUS];
}
function buildRow(index, action, receipt) {
	const flags = Number(action.success) | Number(action.gate_decision !== "skip") << 1 | Number(action.gate_score !== null) << 2 | Number(action.policy_verdict !== null) << 3 | Number(action.action_type === "tool_call") << 4 | Number(action.action_type === "code_gen") << 5;
	const hashes = [
		sha256Hex(action.action_type),
		action.instruction_hash,
		action.input_hash,
		action.output_hash
	];
	const parent = action.parent_receipt_hash === null ? [0n, 0n] : limbs(action.parent_receipt_hash);
	return [
		BigInt(index),
		...hashes.flatMap(limbs),
		...parent,
		...limbs(receipt),
		BigInt(flags)
	];
}
function hashRow(row) {
	const data = new Uint8Array(8 + 16 * row.length);
	const view = new DataView(data.buffer);
	view.setBigUint64(0, row[0]);
	row.forEach((value, at) => view.setBigUint64(8 + 16 * at + 8, value));
	return sha256Bytes(data);
}
/** The levels of the tool's tree, leaves first. An odd last node is paired with itself. */
function buildLevels(leaves) {
	const levels = [leaves];
	for (let level = leaves; level.length > 1; levels.push(level)) {
		const above = [];
		for (let at = 0; at < level.length; at += 2) {
			const pair = /* @__PURE__ */ new Uint8Array(64);
			pair.set(level[at]);
			pair.set(level[at + 1] ?? level[at], 32);
			above.push(sha256Bytes(pair));
		}
		level = above;
	}
	return levels;
}
/** Reads an array one element after the other; a finding says so where it is missing or invalid. */
var ArrayFile = class ArrayFile {
	items = [];
	error = null;
	at = 0;
	isReported = false;
	constructor(isMissing, report) {
		this.isMissing = isMissing;
		this.report = report;
	}
	static async open(data, report) {
		const file = new ArrayFile(data === void 0, report);
		if (data === void 0) return file;
		for await (const { items, error } of readElements(new MemorySource(data))) {
			for (const item of items) if ("value" in item) file.items.push(item.value);
			file.error = error;
		}
		return file;
	}
	next() {
		if (this.at < this.items.length) return this.items[this.at++];
		if (!this.isReported) {
			this.isReported = true;
			if (this.isMissing) this.report("ARTIFACT_MISSING", "it is not here");
			else if (this.error !== null) this.report("SCHEMA_INVALID", this.error.message);
		}
	}
};
var MissingKeys = class extends BadInput {};
var CapsealJudge = class {
	tally = new Tally();
	receipts = new ReceiptJudge(this.tally, { source: ACTIONS });
	leaves = [];
	constructor(archive) {
		this.archive = archive;
	}
	async judge() {
		this.tally.countDone(ARCHIVE_CHECK);
		if (this.archive.members.has(ACTIONS)) await this.judgeLines();
		else this.fail("ARTIFACT_MISSING", "there are no actions with receipts", ACTIONS);
		this.checkDocument(MANIFEST, (data) => this.checkManifest(data));
		this.checkDocument(CAPSULE, (data) => this.checkCapsule(data));
		this.checkDocument(PROOF, (data) => this.checkProof(data));
		if (this.archive.members.has(METADATA)) this.checkDocument(METADATA, (data) => this.checkMetadata(data));
		if (this.archive.members.has(LEVELS)) await this.checkLevels();
	}
	checkDocument(name, check) {
		try {
			const document = readDocument(this.archive, name);
			if (document === void 0 || document === null) this.fail("ARTIFACT_MISSING", `${name} is not here`, name);
			else check(document);
		} catch (error) {
			if (!(error instanceof BadInput)) throw error;
			this.fail("SCHEMA_INVALID", error.message, name);
		}
	}
	fail(code, words, name, check = ARCHIVE_CHECK) {
		this.tally.fail(check, code, words, place(null, null, name));
	}
	async judgeLines() {
		const open = (name) => ArrayFile.open(this.archive.members.get(name), (code, words) => this.fail(code, words, name));
		const listed = await open(ACTIONS_JSON);
		const rows = await open(ROWS);
		const lines = readRawLines(this.archive.members.get(ACTIONS), ACTION_LINE_MAX);
		for (const line of this.receipts.takeAll(lines)) {
			const beside = listed.next();
			if (line === null) continue;
			const row = buildRow(this.leaves.length, line.action, line.receiptHash);
			this.leaves.push(hashRow(row));
			const expected = row.map((value) => new JsonNumber(String(value)));
			if (!equalJson(rows.next(), expected)) this.fail("PROOF_INVALID", `row ${row[0]} is not that of its action`, ROWS, "proof");
			if (!equalJson(beside, actionFields(line.action))) this.fail("RECEIPT_MISMATCH", `action ${this.receipts.count - 1} is another one than in ${ACTIONS}`, ACTIONS_JSON);
		}
		for (const [name, file] of [[ACTIONS_JSON, listed], [ROWS, rows]]) {
			const more = file.next();
			if (more !== void 0 && more !== null) this.fail("TRUNCATED", `it has more entries than ${ACTIONS}`, name);
		}
	}
	checkManifest(manifest) {
		if (!isObject(manifest)) throw new BadInput("it is not an object");
		const last = this.receipts.lastReceipt;
		const expected = [
			["chain_hash", last],
			["root_hex", last],
			["actions_count", this.count]
		];
		for (const [key, value] of expected) if (manifest.has(key) && !equalJson(manifest.get(key), value)) this.fail("TRUNCATED", `its ${key} is not that of the actions`, MANIFEST);
	}
	checkCapsule(capsule) {
		const whole = member(capsule);
		const own = new Map([...whole].filter(([key]) => key !== "capsule_hash"));
		const statement = get(whole, "statement");
		if (get(whole, "capsule_hash") !== sha256Hex(dumpSpaced(own)) || get(whole, "statement_hash") !== sha256Hex(dumpSpaced(statement))) this.fail("HASH_MISMATCH", "its hashes are not its own", CAPSULE);
		const inputs = member(get(member(statement), "public_inputs"));
		if (!equalJson(get(inputs, "num_actions"), this.count) || !equalJson(get(inputs, "final_receipt_hash"), this.receipts.lastReceipt)) this.fail("TRUNCATED", "it is about other actions", CAPSULE);
		const root = this.rowRoot;
		if (get(member(statement), "row_commitment") !== root || get(member(get(whole, "commitment")), "row_root") !== root) this.fail("PROOF_INVALID", "its root is not that of the rows", CAPSULE, "proof");
		const proof = readSmall(this.archive, PROOF, 1048576) ?? /* @__PURE__ */ new Uint8Array();
		if (get(member(get(whole, "proof")), "proof_hash") !== sha256Hex(proof)) this.fail("ARTIFACT_HASH_MISMATCH", "it has the hash of another proof.json", CAPSULE, "proof");
	}
	checkProof(proof) {
		this.tally.countDone("proof", this.receipts.count);
		const whole = member(proof);
		if (!(get(whole, "air_id") === "agent_air_v1" && get(member(get(whole, "constraint_verification")), "valid") === true)) this.fail("PROOF_INVALID", "it does not say that the constraints hold", PROOF, "proof");
		if (get(member(get(whole, "commitment")), "row_root") !== this.rowRoot || !equalJson(get(member(get(whole, "statement")), "num_actions"), this.count)) this.fail("PROOF_INVALID", "it is about other rows", PROOF, "proof");
	}
	checkMetadata(metadata) {
		const whole = member(metadata);
		const expected = [["num_actions", this.count], ["final_receipt_hash", this.receipts.lastReceipt]];
		for (const [key, value] of expected) if (whole.has(key) && !equalJson(whole.get(key), value)) this.fail("TRUNCATED", `its ${key} is not that of the actions`, METADATA);
	}
	async checkLevels() {
		if (this.leaves.length > LEAVES_COMPARED_MAX) {
			this.tally.skip("proof", `${LEVELS} was not compared: more than ${LEAVES_COMPARED_MAX} leaves`, { matters: false });
			return;
		}
		const expected = buildLevels(this.leaves).map((level) => level.map(toHex));
		const file = await ArrayFile.open(this.archive.members.get(LEVELS), (code, words) => this.fail(code, words, LEVELS));
		const levels = [];
		for (let level = file.next(); level !== void 0; level = file.next()) levels.push(level);
		if (!equalJson(levels, expected)) this.fail("PROOF_INVALID", "it is not the tree over the rows", LEVELS, "proof");
	}
	get count() {
		return new JsonNumber(String(this.receipts.count));
	}
	get rowRoot() {
		const top = buildLevels(this.leaves).at(-1)?.[0];
		return top === void 0 ? sha256Hex("empty") : toHex(top);
	}
};
function member(value) {
	if (!isObject(value)) throw new MissingKeys("it lacks keys that the tool writes");
	return value;
}
function get(data, key) {
	const value = data.get(key);
	if (value === void 0) throw new MissingKeys("it lacks keys that the tool writes");
	return value;
}
// src/verify/run/verify.ts
/** Verify runs: `.cap` files, lines of actions, proofs of inclusion, and chains of runs in bundles. */
/** Bytes of a file that a page reads whole. `aver verify` streams such files. */
var WHOLE_MAX = 256 * 1024 ** 2;
/** The bytes of a file. Raises `NotJudged` if it is too large for a page. */
async function readWhole(name, source) {
	if (source.size > WHOLE_MAX) throw new NotJudged(`${name} is larger than a page can hold; run: aver verify ${name}`);
	return source.read(0, source.size);
}
/** The verdict on a `.cap` file, of Aver or of the public CapSeal tool. */
async function judgeArchive(name, source, options, examiners) {
	try {
		const archive = await readArchive(await readWhole(name, source), new Set(MEMBER_ORDER), CAPSEAL_MEMBERS);
		return isCapseal(archive) ? await judgeCapseal(name, archive, options) : await judgeFiles(name, archive, options, examiners);
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		const tally = new Tally();
		tally.fail(ARCHIVE_CHECK, error.code, error.message, place(null, null, name));
		return conclude(name, tally, "signature", [
			...CHECKS,
			...RUN_CHECKS,
			ARCHIVE_CHECK
		]);
	}
}
/** The verdict on lines of actions by themselves. */
async function judgeActions(name, source) {
	const tally = new Tally();
	const receipts = new ReceiptJudge(tally, { source: name });
	for (const _ of receipts.takeAll(readRawLines(await readWhole(name, source), ACTION_LINE_MAX)));
	tally.records = receipts.count;
	receipts.finish();
	tally.skip("sealed", `receipts and links can be made by anyone: it is alone, and nothing says where it is sealed`, { matters: true });
	tally.skip("signature", "lines of actions are not signed", { matters: true });
	return conclude(name, tally, "signature", [...CHECKS, ...RUN_CHECKS]);
}
/** The verdict on a proof that a run has an action. */
async function judgeProof(name, source, options) {
	const tally = new Tally();
	try {
		judgeProofDocument(readJson(await source.read(0, Math.min(source.size, 16777217))), name, options, tally);
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		tally.fail("proof", error.code, error.message, place(null, null, name));
	}
	tally.skip("sealed", "the other actions of the run are not here", { matters: false });
	tally.skip("links", "the run's seal is on its own here", { matters: false });
	tally.skip("gates", "the gate's records are not here", { matters: false });
	return conclude(name, tally, "signature", [...CHECKS, ...RUN_CHECKS]);
}
function judgeProofDocument(document, name, options, tally) {
	const keys = [
		"v",
		"proof_type",
		"statement",
		"index",
		"action",
		"receipt_hash",
		"path",
		"seal"
	];
	if (!isObject(document) || document.size !== keys.length || !keys.every((key) => document.has(key))) throw new BadInput("a proof of inclusion has other keys");
	const [version, type, stated, index, acted, receipt, path, entry] = keys.map((key) => document.get(key));
	if (!isInteger(version) || version.text !== "1" || type !== "inclusion") throw new BadInput("this is a proof of another sort or version");
	if (!Array.isArray(path) || !isInteger(index)) throw new BadInput("a proof of inclusion has a place and a path");
	const where = place(null, null, name);
	const action = readAction(acted);
	tally.countDone("receipts");
	if (receiptHash(action) !== receipt) tally.fail("receipts", "RECEIPT_MISMATCH", "the receipt is not that of the action", where);
	const statement = readRunStatement(stated);
	const chain = runChain(statement.runId);
	const retired = retirementsByTime(options.ring, options.ed25519);
	const judge = new ChainJudge(plainRules(options.ring, options.ed25519, {
		retired,
		requirePq: options.requirePq ?? false
	}), {
		chain,
		start: null,
		source: name,
		needsBlock: true
	});
	const parts = ["canonical", ...SEAL_KEYS];
	if (!isObject(entry) || entry.size !== parts.length || !parts.every((key) => entry.has(key))) throw new BadInput("a proof's seal is a capsule with its canonical text");
	const [canonical, hash, signature, signature_pq, signed_at, signed_by] = parts.map((key) => entry.get(key));
	if (![
		canonical,
		hash,
		signature,
		signature_pq,
		signed_at,
		signed_by
	].every((value) => typeof value === "string")) throw new BadInput("the parts of a seal are strings");
	const seal = {
		hash,
		signature,
		signature_pq,
		signed_at,
		signed_by
	};
	const content = judge.judge(checkSealFields(new Sealed(canonical, seal)));
	tally.merge(judge.finish());
	tally.countDone("proof");
	const fail = (words) => tally.fail("proof", "PROOF_INVALID", words, where);
	if (content === null || readKind(content) !== "run.seal") {
		fail("the seal is not that of a run");
		return;
	}
	const sealed = readRunSeal(content, {
		ledger: "",
		tenant: "",
		chain
	});
	const theirs = sealed.statement;
	if (!(theirs !== null && theirs.runId === statement.runId && theirs.numActions === statement.numActions && theirs.finalReceiptHash === statement.finalReceiptHash && theirs.rowRoot === statement.rowRoot) || sealed.runId !== statement.runId || sealed.numActions !== statement.numActions) fail("the run's seal says another statement");
	const problem = inclusionProblem(statement, index.value, action, path);
	if (problem !== null) fail(problem);
}
/** The examiner of the chains of runs in a bundle. */
var RUN_EXAMINER = {
	domains: ["actions"],
	checks: RUN_CHECKS,
	examine: examineRuns
};
async function examineRuns(examination) {
	const tally = new Tally();
	let unsealed = 0;
	let waiting = 0;
	let waited = 0;
	for (const chain of selectChains(examination, "actions")) {
		if (!chain.count) continue;
		await guard(tally, "sealed", place(chain.name), async () => {
			const { run, judge } = await examineRun(examination, chain);
			unsealed += Number(judge !== null && judge.seal === null);
			waiting += judge?.waiting ?? 0;
			waited += judge?.waited ?? 0;
			tally.merge(run);
		});
	}
	if (examination.isSingle) {
		for (const check of RUN_CHECKS) if (!tally.done.has(check)) tally.skip(check, DOES_NOT_APPLY, { matters: false });
		return tally;
	}
	skipAnswers(tally, waiting, waited, false);
	if (unsealed) tally.notes.set("sealed", `${tally.done.get("sealed") ?? 0} checked; ${unsealed} runs are not sealed yet`);
	return tally;
}
async function examineRun(examination, chain) {
	const { reader, ledger, tenant } = examination;
	let runId;
	try {
		for await (const first of reader.read(chain.origin)) {
			const result = first.content.get("outcome").get("result");
			runId = isObject(result) ? result.get("run_id") : void 0;
			break;
		}
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
	}
	if (runId === void 0) {
		const run = new Tally();
		run.fail("sealed", "CHAIN_IDENTITY", "the chain does not begin as a run does", place(chain.name, 0));
		return {
			run,
			judge: null
		};
	}
	const identity = {
		ledger,
		tenant,
		chain: chain.origin,
		count: 0,
		hash: null
	};
	const judge = new RunJudge(examination.rules, String(runId), identity, {
		storedAs: chain.name,
		isValid: true
	});
	let count = 0;
	for await (const record of reader.read(chain.origin)) {
		if (count++ >= chain.count) break;
		const line = await takeLine(judge, record, (digest) => reader.blob(digest));
		judge.take(record, line, line === null ? null : sealForm(line.action, line.texts));
	}
	await takeGateRecords(examination, judge);
	const { records: tally, ending } = judge.finish({ isComplete: false });
	if (!examination.isSingle) {
		tally.notes.clear();
		ending.skipped.delete("sealed");
		ending.skipped.delete("answers");
	}
	tally.merge(ending);
	if (judge.receipts.count !== judge.actions) {
		const words = `the file has ${judge.receipts.count} actions; ${judge.actions} are sealed`;
		tally.fail("sealed", "TRUNCATED", words, place(chain.name, chain.count));
	}
	return {
		run: tally,
		judge
	};
}
/** Judge the line that follows from the record of an action. */
async function takeLine(judge, record, blob) {
	try {
		if (record.kind !== "action") return null;
		const action = await loadAction(readSealedAction(record.content), blob);
		const texts = encodeAction(action);
		const line = `${asciiJson(actionFields(action)).slice(0, -1)},"receipt_hash":"${texts.receiptHash}","canonical_fields":${texts.receipt}}`;
		return judge.receipts.take(encoder.encode(line));
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		return judge.receipts.take(new BadInput(error.message));
	}
}
/** Take the gate's own chain as far as the seal counts it, and the decisions of other chains that actions name. */
async function takeGateRecords({ reader }, judge) {
	const gates = judge.seal?.gates ?? null;
	if (gates !== null) try {
		let count = 0;
		for await (const record of reader.read(gates.chain)) {
			if (count++ >= gates.count) break;
			judge.takeGateRecord(record, { isOwn: true });
		}
	} catch (error) {
		if (!(error instanceof NotFound)) throw error;
	}
	for (const digest of [...judge.wanted]) {
		const found = await reader.get(digest);
		if (found !== null) judge.takeGateRecord(found, { isOwn: false });
	}
}
// src/verify/subject.ts
/** Recognise a thing by its name and its first bytes, as `aver.check` does. */
/** How many bytes at the beginning of a file are read to recognise its format. */
var BEGINNING_BYTES = 65536;
var SQLITE_MAGIC = "SQLite format 3\0";
/** The first keys of the file of an act. */
var ACT_KEYS = /* @__PURE__ */ new Set([
	"act_file",
	"action_id",
	"approved_in",
	"blobs"
]);
/** Each says at the beginning of a page that it is a report, also where a byte of the other was changed. */
var REPORT_MARKS = ["<meta name=\"aver\" content=\"report 1\">", "<p class=\"meta\">Report Â· "];
/** `{` or `[` if the bytes look like a JSON object or array, otherwise empty. */
function jsonOpening(beginning) {
	let at = beginning[0] === 239 && beginning[1] === 187 && beginning[2] === 191 ? 3 : 0;
	while (at < beginning.length && (beginning[at] === 32 || beginning[at] >= 9 && beginning[at] <= 13)) at++;
	return beginning[at] === 123 ? "{" : beginning[at] === 91 ? "[" : "";
}
/** The keys of a JSON object that its beginning contains. The text may break off anywhere. */
function firstKeys(beginning) {
	if (jsonOpening(beginning) !== "{") return [];
	const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(beginning);
	const keys = [];
	let at = text.indexOf("{") + 1;
	const readValue = () => {
		const end = findValueEnd(text, at);
		if (end === null) throw new Error("the text ends");
		const value = JSON.parse(text.slice(at, end));
		at = end;
		return value;
	};
	try {
		for (;;) {
			at = skipSpace(text, at);
			if (text[at] !== "\"") return keys;
			const key = readValue();
			at = skipSpace(text, at);
			if (text[at] !== ":") return keys;
			keys.push(key);
			at = skipSpace(text, at + 1);
			if (at >= text.length) return keys;
			readValue();
			at = skipSpace(text, at);
			if (text[at] !== ",") return keys;
			at++;
		}
	} catch {
		return keys;
	}
}
/** The format of a file; null if Aver does not know it. */
function recogniseFile(name, beginning) {
	const start = new TextDecoder("latin1").decode(beginning);
	const opening = jsonOpening(beginning);
	if (start.startsWith(SQLITE_MAGIC) && beginning.length >= 100 || name === "ledger.db" && !opening) return "elsewhere";
	const keys = firstKeys(beginning);
	const has = (...names) => names.every((key) => keys.includes(key));
	if (has("capsules")) return "chain";
	if (has("v", "purpose") && /"purpose"\s*:\s*"checkpoint"/.test(start)) return "elsewhere";
	if (name.endsWith(".cap") || beginning[0] === 31 && beginning[1] === 139) return "cap";
	if (new Set(keys.slice(0, 4).filter((key) => ACT_KEYS.has(key))).size > 1) return "elsewhere";
	if (REPORT_MARKS.some((mark) => start.includes(mark))) return "report";
	if (has("proof_type", "statement", "path")) return "proof";
	if (name === "actions.jsonl" || has("action_id", "receipt_hash")) return "actions";
	return opening || beginning.every((byte) => byte === 32 || byte >= 9 && byte <= 13) ? "capsules" : null;
}
// src/verify/verify.ts
/**
* The verifier: from bytes and keys to a verdict. It has no DOM and no file system, and runs in a page, a worker and Node.
*
*     const verdict = await verifyFile("capsules.jsonl", source, { ring, ed25519 })
*
* For everything that it can read, its verdict is that of `aver verify` with the same keys. Checks that only Python makes
* are `not_checked`. A thing that it does not judge raises `NotJudged`, which names the command that does.
*/
var EXAMINERS = [APPROVALS_EXAMINER, RUN_EXAMINER];
/** An Ed25519 verifier that has tried the platform on the known cases. */
async function openEd25519() {
	const ed25519 = new Ed25519();
	await ed25519.checkPlatform(ed25519_default.cases);
	return ed25519;
}
/** The verdict on a directory: a bundle. */
async function verifyDirectory(directory, options) {
	if ((await directory.list()).includes("index.json")) return judgeBundle(directory, options, EXAMINERS);
	throw new NotJudged(`${directory.name} is no bundle: it has no index.json. For a run or a ledger, run: aver verify PATH`);
}
/** The verdict on a file. */
async function verifyFile(name, source, options) {
	const beginning = await readStart(source, BEGINNING_BYTES);
	switch (recogniseFile(name, beginning)) {
		case "chain": return judgeChainFile(name, source, options);
		case "capsules": return judgeCapsules(name, source, jsonOpening(beginning), options);
		case "cap": return judgeArchive(name, source, options, EXAMINERS);
		case "actions": return judgeActions(name, source);
		case "report": return judgeReport(name, source, options, EXAMINERS);
		case "proof": return judgeProof(name, source, options);
		case "elsewhere": throw new NotJudged(`a page cannot judge ${name}; run: aver verify ${name}`);
		default: throw new NotJudged(`${name} is nothing that Aver can verify`);
	}
}
// src/node/files.ts
/** Files and directories on disk, for the verifier in Node. No link inside a directory is followed. */
/** A file on disk. It is opened for each block, so that a verifier of many files needs few handles. */
var DiskFile = class extends BlockSource {
	constructor(path, size) {
		super();
		this.path = path;
		this.size = size;
	}
	async load(start, end) {
		let handle = null;
		try {
			handle = await open(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
			const buffer = new Uint8Array(Math.max(Math.min(end, this.size) - start, 0));
			let filled = 0;
			while (filled < buffer.length) {
				const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, start + filled);
				if (bytesRead === 0) break;
				filled += bytesRead;
			}
			return buffer.subarray(0, filled);
		} finally {
			await handle?.close();
		}
	}
};
function isMissing(error) {
	return ["ENOENT", "ENOTDIR"].includes(error.code ?? "");
}
/** Open a regular file, behind links. Raises `NotFound` or `BadInput`. */
async function openFile(path) {
	try {
		const status = await stat(path);
		if (!status.isFile()) throw new BadInput(`${path} is not a regular file`);
		return new DiskFile(path, status.size);
	} catch (error) {
		throw isMissing(error) ? new NotFound(`there is no ${path}`) : error;
	}
}
/** A directory on disk. */
var DiskDirectory = class {
	constructor(path) {
		this.path = path;
		this.name = basename(resolve(path));
	}
	async list(inside) {
		if (inside === void 0) return readdir(this.path);
		try {
			const path = join(this.path, inside);
			return (await lstat(path)).isDirectory() ? await readdir(path) : null;
		} catch (error) {
			if (isMissing(error)) return null;
			throw error;
		}
	}
	async open(...names) {
		let path = this.path;
		for (const name of names) if (!isFileName(name)) throw new BadInput(`${show(name)} is not a name that a file may have here`);
		try {
			for (const [at, name] of names.entries()) {
				path = join(path, name);
				const status = await lstat(path);
				const isLast = at === names.length - 1;
				if (!isLast && !status.isDirectory()) throw status.isSymbolicLink() ? new BadInput(`${path} is a link`) : new NotFound(`there is no ${path}`);
				if (isLast && !status.isFile()) throw new BadInput(`${path} is not a regular file`);
				if (isLast) return new DiskFile(path, status.size);
			}
		} catch (error) {
			throw isMissing(error) ? new NotFound(`there is no ${path}`) : error;
		}
		throw new NotFound(`there is no ${path}`);
	}
	async findSharedFiles(names) {
		const seen = /* @__PURE__ */ new Map();
		for (const name of await readdir(this.path)) {
			if (!names.has(name)) continue;
			const status = await lstat(join(this.path, name));
			if (status.nlink < 2 || status.isDirectory()) continue;
			const inode = `${status.dev}:${status.ino}`;
			const other = seen.get(inode);
			if (other !== void 0) return other < name ? [other, name] : [name, other];
			seen.set(inode, name);
		}
		return null;
	}
};
// src/verify/key_list.ts
/** The keys in a list: a file of `aver keys export`, the list of a server, known keys, or those of a bundle's index. */
/** Raise `BadInput` for the index of a bundle, however it is called: its keys come with the records, and vouch for nothing. */
function refuseIndex(document) {
	if (isObject(document) && (document.has("chains") || document.has("public_key"))) throw new BadInput("it is the index of a bundle, whose keys come with the records. Ask the owner for the file of aver keys export");
}
/** Read a list, which may have no key: a new ledger has none before its first record. Raises `BadInput`. */
function readKeyList(text) {
	const found = [];
	const look = (value) => {
		if (Array.isArray(value)) value.forEach(look);
		else if (value instanceof Map) {
			const entry = new Map([...value].filter(([name]) => name !== "origin"));
			if (!(!entry.has("identity") || value.has("origin") && entry.get("identity") === null)) found.push({
				key: readRingEntry(entry).key,
				entry
			});
			else if (typeof value.get("public_key") === "string" && value.has("public_key_pq")) found.push({
				key: new PublicKey(value.get("public_key"), value.get("public_key_pq")),
				entry: null
			});
			else for (const item of value.values()) look(item);
		} else if (typeof value === "string" && /^[0-9a-f]{64}$/.test(value)) found.push({
			key: new PublicKey(value),
			entry: null
		});
	};
	look(readJson(text));
	return found;
}
// src/node/keys.ts
/** The keys that `--key` names. The twin of `aver.keys.exchange.read_keys`: a file that Aver refuses is refused here, too. */
var EXPORT_FORMAT = "aver-public-keys";
/** Bytes of a text that may be a key alone. */
var TEXT_MAX = 128;
/** Read a key of 64 digits, or a file of `aver keys export`, whose retirements then count. Raises `BadInput`. */
async function readKeyOption(given) {
	const data = /^[0-9A-Fa-f]{64}$/.test(given) ? null : await readFile(given).catch(() => null);
	const keys = data === null ? [new PublicKey(given)] : readKeyFile(data);
	const ring = new Ring(keys);
	if (!ring.keys.length) throw new BadInput(`no public key in ${given}`);
	for (const { ed25519, fingerprint } of ring.keys) if (!isPrimeOrderPoint(ed25519)) throw new BadInput(`${fingerprint} is not a usable Ed25519 public key`);
	return keys;
}
function readKeyFile(data) {
	const plain = data.length <= TEXT_MAX ? Buffer.from(data).toString("latin1").trim() : "";
	if (/^[0-9A-Fa-f]{64}$/.test(plain)) return [new PublicKey(plain)];
	const document = readJson(data);
	if (!isObject(document)) throw new BadInput("it is in no format of keys that Aver reads");
	if (document.get("format") === EXPORT_FORMAT) {
		checkVersion(checkObject(document, "export", [
			"format",
			"version",
			"keys"
		]).get("version"), "export");
		const keys = document.get("keys");
		if (!Array.isArray(keys)) throw new BadInput("keys must be a list");
		return keys.map(readExported);
	}
	refuseIndex(document);
	const epochs = document.get("epochs");
	if (epochs !== void 0) {
		checkVersion(document.get("version"), "epochs");
		if (!Array.isArray(epochs)) throw new BadInput("epochs must be a list");
		return epochs.map((epoch) => new PublicKey(isObject(epoch) ? epoch.get("public_key_hex") : null));
	}
	if (document.has("entries")) return readKeyList(data).map(({ key, entry }) => entry === null ? key : readRingEntry(entry));
	return [...document].map(([name, value]) => readKnown(name, value));
}
/** One of a list of known keys, such as that of a home: each under its fingerprint, or under itself. */
function readKnown(name, value) {
	const key = new PublicKey(value);
	if (name !== key.fingerprint && name !== key.ed25519) throw new BadInput("a known key is listed under the name of another");
	return key;
}
function readExported(item) {
	if (isObject(item) && item.has("identity")) return readRingEntry(item);
	const bare = checkObject(item, "key", [
		"algorithm",
		"fingerprint",
		"public_key",
		"public_key_pq"
	]);
	const key = new PublicKey(bare.get("public_key"), bare.get("public_key_pq"));
	if (bare.get("algorithm") !== key.algorithm || bare.get("fingerprint") !== key.fingerprint) throw new BadInput("algorithm or fingerprint contradicts the key");
	return key;
}
// src/node/site_page.ts
/** Whether a site's page is one of Aver's. The twin of `check_page` in `aver.ledger.bundle.site`; only the command judges it. */
var PAGE_FILE = "index.html";
var MEMBERS = [
	PAGE_FILE,
	"explorer/app.js",
	"explorer/style.css"
];
var PAGE_MAX = 8388608;
var PATH_SHOWN = 80;
/** SHA-256 over lines as `sha256sum` prints them, one for each file of a page, as it is shipped. */
async function digestPage(read) {
	const whole = createHash("sha256");
	for (const path of MEMBERS) {
		const bytes = Buffer.from(await read(path));
		const shipped = path === PAGE_FILE ? Buffer.from(bytes.toString("latin1").replaceAll("data-door=\"site\"", "data-door=\"files\""), "latin1") : bytes;
		whole.update(`${createHash("sha256").update(shipped).digest("hex")}  ${path}\n`);
	}
	return whole.digest("hex");
}
/** Warn of a page that no version of Aver has made, and of other files beside it (check `page`). */
async function checkPage(directory, tally) {
	const warn = (words, path) => tally.warn("page", "PAGE_FOREIGN", words, place(null, null, show(path, 4e3).slice(1, -1).slice(0, PATH_SHOWN)));
	let problem = "";
	try {
		const known = Object.values(JSON.parse(readFileSync(new URL(
			/* @vite-ignore */
			"pages.json",
			import.meta.url
		), "utf8")));
		const digest = await digestPage(async (path) => {
			const file = await directory.open(...path.split("/"));
			if (file.size > PAGE_MAX) throw new BadInput(`${path} is larger than ${PAGE_MAX} bytes`);
			return readStart(file, PAGE_MAX);
		});
		if (!known.includes(digest)) problem = "no version of Aver has made this page";
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		problem = `this is no page of Aver's: ${error.message}`;
	}
	if (problem) warn(`${problem}: do not open it, open the records with your own Explorer`, PAGE_FILE);
	const own = /* @__PURE__ */ new Set([
		...MEMBERS,
		NAMES,
		...await countTwins(directory)
	]);
	for (const path of await listSite(directory)) if (!own.has(path)) warn("it is no part of the page, and may be opened by one: do not open it", path);
}
/** The paths of the twins that the site lists. A list that cannot be read is reported where they are compared. */
async function countTwins(directory) {
	try {
		return (await readNames(await directory.open(...NAMES.split("/")))).map((_, at) => twinOf(at));
	} catch (error) {
		if (!(error instanceof BadInput)) throw error;
		return [];
	}
}
/** The paths of what lies in the site's directories. No link is followed. */
async function listSite(directory) {
	const data = await directory.list("explorer/data");
	return [...sortTexts(await directory.list("explorer") ?? []).filter((name) => name !== "data" || data === null).map((name) => `explorer/${name}`), ...sortTexts(data ?? []).map((name) => `explorer/data/${name}`)];
}
// src/node/main.ts
/**
* The verifier as a command, without Python:
*
*     node verify.mjs THING [--key HEX|FILE]... [--require-pq]
*
* It prints what `aver verify THING --json` prints, and ends with the same exit codes: 0 verified or qualified, 1 failed or
* empty, 2 bad input. Without `--key`, no key is known. FILE is one of `aver keys export`. Other programs import `verifyPath`.
*/
/** The verdict on a file or directory. */
async function verifyPath(path, given) {
	const options = {
		...given,
		checkPage
	};
	const status = await stat(path).catch(() => null);
	if (status === null) throw new NotJudged(`there is no ${path}`);
	if (status.isDirectory()) return verifyDirectory(new DiskDirectory(path), options);
	const name = basename(path);
	if (name === "index.json") return verifyDirectory(new DiskDirectory(dirname(path)), options);
	return verifyFile(name, await openFile(path), options);
}
/** The text of a verdict. A sequence number that JavaScript would round is written digit by digit. */
function dumpVerdict(verdict) {
	const digits = /* @__PURE__ */ new Map();
	const text = JSON.stringify(verdictDocument(verdict), (_, value) => {
		if (typeof value !== "bigint") return value;
		const mark = `\u0000${digits.size}\u0000`;
		digits.set(JSON.stringify(mark), String(value));
		return mark;
	}, 2);
	return [...digits].reduce((out, [mark, number]) => out.replace(mark, number), text);
}
/** Whether a file of keys is the thing that is verified, or lies in it. */
async function isInside(file, thing) {
	const resolve = (path) => realpath(path).catch(() => null);
	const key = await resolve(file);
	const root = await resolve(basename(thing) === "index.json" ? dirname(thing) : thing);
	return key !== null && root !== null && (key === root || key.startsWith(`${root}${sep}`));
}
async function main(given) {
	const things = [];
	const files = [];
	const keys = [];
	let requirePq = false;
	try {
		for (let at = 0; at < given.length; at++) {
			const word = given[at];
			if (word === "--key") {
				const key = given[++at] ?? "";
				keys.push(...await readKeyOption(key));
				files.push(key);
			} else if (word === "--require-pq") requirePq = true;
			else if (word.startsWith("-")) throw new BadInput(`there is no option ${word}`);
			else things.push(word);
		}
		if ((await Promise.all(files.map((file) => isInside(file, things[0] ?? "")))).some(Boolean)) throw new BadInput("keys that come with the thing vouch for nothing: ask its owner for them");
		if (things.length !== 1) throw new BadInput("usage: node verify.mjs THING [--key HEX|FILE]... [--require-pq]");
		const ring = new Ring(keys);
		const verdict = await verifyPath(things[0], {
			ring,
			requirePq,
			ed25519: await openEd25519()
		});
		process.stdout.write(`${dumpVerdict(verdict)}\n`);
		return (verdict.status === "verified" || verdict.status === "qualified") && (!keys.length || heldOf(verdict)) ? 0 : 1;
	} catch (error) {
		if (!(error instanceof BadInput || error instanceof NotJudged)) throw error;
		process.stderr.write(`verify.mjs: ${error.message}\n`);
		return 2;
	}
}
if (process.argv[1] !== void 0 && import.meta.url === pathToFileURL(process.argv[1]).href) process.exitCode = await main(process.argv.slice(2));
export { BadInput, ChainJudge, Passkey, PublicKey, Ring, Sealed, canonicalJson, conclude, decodeUtf8, dumpVerdict, holdsByPoints, openEd25519, passkeyProblem, plainRules, readJson, readKeyOption, readRecord, readRingEntry, sealedFromJson, sha3, splitOffKeys, statementBytes, verifyPath };

/*!
This file contains these libraries, without the parts that it never calls:

@noble/curves

The MIT License (MIT)

Copyright (c) 2022 Paul Miller (https://paulmillr.com)

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the “Software”), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED “AS IS”, WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.

@noble/hashes

The MIT License (MIT)

Copyright (c) 2022 Paul Miller (https://paulmillr.com)

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the “Software”), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED “AS IS”, WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.

@noble/post-quantum

The MIT License (MIT)

Copyright (c) 2024 Paul Miller (https://paulmillr.com)

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the “Software”), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED “AS IS”, WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.
*/
