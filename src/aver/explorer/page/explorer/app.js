function averExplorer() {
"use strict";
// src/verify/json.ts
var ELEMENT_MAX=16777216
var TOKENS_MAX=1e6
var INTEGER_DIGITS_MAX=4300
var SHORT_DIGITS=16
var BadInput=class extends Error {
get code() {
return "SCHEMA_INVALID"
}
}
var NotFound=class extends BadInput {}
var Unreadable=class extends BadInput {}
var DuplicateKey=class extends Unreadable {
get code() {
return "DUPLICATE_KEY"
}
}
var NotCanonical=class extends BadInput {}
var JsonNumber=class {
constructor(text,isInteger=INTEGER.test(text)) {
this.text=text
this.isInteger=isInteger
}
get value() {
return Number(this.text)
}
}
var INTEGER=/^-?[0-9]+$/
var SPACE=/[ \t\r\n]*/y
var CONTROL=/[\u0000-\u001f]/g
var NUMBER=/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y
var decoder=new TextDecoder("utf-8",{fatal:true,ignoreBOM:true})
var encoder=new TextEncoder()
function decodeUtf8(data) {
try {
return decoder.decode(data)
} catch {
throw new Unreadable("not UTF-8")
}
}
function readJson(data) {
return new Parser(decodeBounded(data)).document()
}
function parseBounded(text) {
return new Parser(text).document()
}
function readWithForm(text,writeNumber) {
const parser=new Parser(decodeBounded(text),writeNumber)
return {value:parser.document(),isCanonical:parser.isCanonical}
}
function decodeBounded(data) {
if (isTooLarge(data)) throw new Unreadable(`larger than ${ELEMENT_MAX} bytes`)
const text=typeof data==="string"?data:decodeUtf8(data)
checkTokenCount(text)
if (countOf$1(text,"[")+countOf$1(text,"{")>200) {
const start=skipSpace(text,0)
if (start<text.length) findValueEnd(text,start)
}
return text
}
function isTooLarge(data) {
if (data.length>16777216) return true
if (typeof data!=="string"||3*data.length<=16777216) return false
return byteLength(data)>ELEMENT_MAX
}
function byteLength(text) {
let size=text.length
for (let at=0; at<text.length; at++) {
const unit=text.charCodeAt(at)
if (unit>=2048) size+=unit>=55296&&unit<57344&&isPair(text,at)?1:2
else if (unit>=128) size+=1
}
return size
}
function isPair(text,at) {
const unit=text.charCodeAt(at)
const other=unit<56320?text.charCodeAt(at+1):text.charCodeAt(at-1)
return unit<56320?other>=56320&&other<57344:other>=55296&&other<56320
}
function countOf$1(text,character) {
let count=0
for (let at=text.indexOf(character); at>=0; at=text.indexOf(character,at+1)) count++
return count
}
function checkTokenCount(text) {
if (text.length>1e6&&countTokens(text)>1e6) throw tooManyValues()
}
function tooManyValues() {
return new Unreadable(`holds more than ${TOKENS_MAX} values`)
}
function countTokens(text) {
let count=0
for (let at=0; at<text.length&&count<=1e6; at++) {
const unit=text.charCodeAt(at)
if (unit===34) {
const end=findStringEnd(text,at)
if (end===null) break
at=end-1
} else if (unit===44||unit===58||unit===91||unit===123) count++
}
return count
}
function skipSpace(text,at) {
if (text.charCodeAt(at)>32) return at
SPACE.lastIndex=at
SPACE.test(text)
return SPACE.lastIndex
}
function findStringEnd(text,at) {
for (let quote=text.indexOf("\"",at+1); quote>=0; quote=text.indexOf("\"",quote+1)) {
let before=quote-1
while (text.charCodeAt(before)===92) before--
if ((quote-before)%2===1) return quote+1
}
return null
}
function findValueEnd(text,at) {
const first=text.charCodeAt(at)
if (first===34) return findStringEnd(text,at)
if (first!==91&&first!==123) {
let end=at
while (end<text.length&&!" 	\r\n\"[]{},:".includes(text[end])) end++
return end<text.length?end:null
}
let depth=0
let opened=0
for (let here=at; here<text.length; here++) {
const unit=text.charCodeAt(here)
if (unit===34) {
const end=findStringEnd(text,here)
if (end===null) return null
here=end-1
} else if (unit===91||unit===123) {
depth++
opened++
if (depth>200) throw new Unreadable(`nested deeper than 200 levels`)
if (opened>1e6) throw tooManyValues()
} else if (unit===93||unit===125) {
depth--
if (depth===0) return here+1
}
}
return null
}
function findControl(text,at) {
CONTROL.lastIndex=at
return CONTROL.test(text)?CONTROL.lastIndex-1:text.length
}
var GUESSES=[]
var GUESSES_MAX=256
var GUESS_CHARS=64
var Parser=class {
at=0
keys=0
nextEscape=-1
nextControl=-1
isCanonical=true
constructor(text,writeNumber=null) {
this.text=text
this.writeNumber=writeNumber
}
document() {
this.space()
const value=this.value()
this.space()
if (this.at!==this.text.length) throw this.error("something follows the end of the document")
return value
}
space() {
const unit=this.text.charCodeAt(this.at)
if (unit===32||unit>=9&&unit<=13) {
this.at=skipSpace(this.text,this.at)
this.isCanonical=false
}
}
error(words) {
return new Unreadable(`not valid JSON: ${words} (character ${this.at})`)
}
value() {
switch (this.text.charCodeAt(this.at)) {
case 34:return this.string()
case 123:return this.object()
case 91:return this.array()
case 116:return this.word("true",true)
case 102:return this.word("false",false)
case 110:return this.word("null",null)
default:return this.number()
}
}
word(word,value) {
if (!this.text.startsWith(word,this.at)) throw this.error("expected a value")
this.at+=word.length
return value
}
number() {
const {text,at}=this
let end=at
for (let unit=text.charCodeAt(end); unit>=48&&unit<=57; unit=text.charCodeAt(++end));
const next=text.charCodeAt(end)
if (end>at&&end-at<SHORT_DIGITS&&(text.charCodeAt(at)!==48||end===at+1)&&next!==46&&next!==69&&next!==101) {
this.at=end
return new JsonNumber(text.slice(at,end),true)
}
NUMBER.lastIndex=at
const match=NUMBER.exec(text)
if (match===null) throw this.error("expected a value")
this.at=NUMBER.lastIndex
const number=new JsonNumber(match[0])
if (number.isInteger) {
if (number.text.length-Number(number.text.startsWith("-"))>INTEGER_DIGITS_MAX) throw this.error("an integer with too many digits")
} else if (!Number.isFinite(number.value)) throw new Unreadable(`the number ${number.text.slice(0,40)} is too large for a float`)
if (this.writeNumber!==null&&this.isCanonical) this.isCanonical=this.writeNumber(number)===number.text
return number
}
string() {
const {text,at}=this
const quote=text.indexOf("\"",at+1)
if (this.nextEscape<at) {
const escape=text.indexOf("\\",at)
this.nextEscape=escape<0?text.length:escape
}
if (quote>=0&&quote<this.nextEscape) {
if (this.nextControl<at) this.nextControl=findControl(text,at)
if (quote<this.nextControl) {
this.at=quote+1
return text.slice(at+1,quote)
}
}
const end=findStringEnd(text,at)
if (end===null) throw this.error("a string has no end, or holds a control character")
try {
const written=text.slice(at,end)
const value=JSON.parse(written)
this.at=end
if (this.writeNumber!==null&&this.isCanonical) this.isCanonical=value.isWellFormed()&&JSON.stringify(value)===written
return value
} catch {
throw this.error("a string has a bad escape, or holds a control character")
}
}
key() {
const turn=this.keys++
const guess=GUESSES[turn]
if (guess!==void 0&&this.text.startsWith(guess.written,this.at)) {
this.at+=guess.written.length
return guess.key
}
const {at}=this
const key=this.string()
if (turn<GUESSES_MAX&&key.length<GUESS_CHARS&&this.at-at===key.length+2) GUESSES[turn]={key,written:this.text.slice(at,this.at)}
return key
}
array() {
const items=[]
this.at++
this.space()
if (this.text.charCodeAt(this.at)===93) {
this.at++
return items
}
for (;;) {
items.push(this.value())
this.space()
const unit=this.text.charCodeAt(this.at)
if (unit===93) {
this.at++
return items
}
if (unit!==44) throw this.error("expected a comma or the end of an array")
this.at++
this.space()
}
}
object() {
const members=new Map()
let count=0
let twice=null
let before=null
this.at++
this.space()
if (this.text.charCodeAt(this.at)===125) {
this.at++
return members
}
for (;;) {
if (this.text.charCodeAt(this.at)!==34) throw this.error("expected a key")
const key=this.key()
if (this.isCanonical&&before!==null) this.isCanonical=compareCodePoints(before,key)<0
before=key
this.space()
if (this.text.charCodeAt(this.at)!==58) throw this.error("expected a colon")
this.at++
this.space()
const value=this.value()
count++
members.set(key,value)
if (members.size!==count&&twice===null) twice=key
this.space()
const unit=this.text.charCodeAt(this.at)
if (unit===125) {
this.at++
if (twice!==null) throw new DuplicateKey(`the key ${JSON.stringify(twice.slice(0,80))} occurs twice in one object`)
return members
}
if (unit!==44) throw this.error("expected a comma or the end of an object")
this.at++
this.space()
}
}
}
function compareCodePoints(one,other) {
const length=Math.min(one.length,other.length)
for (let at=0; at<length; at++) {
const left=one.charCodeAt(at)
const right=other.charCodeAt(at)
if (left===right) continue
const isLeftHigh=left>=55296&&left<57344
return isLeftHigh===(right>=55296&&right<57344)?left-right:isLeftHigh?1:-1
}
return one.length-other.length
}
function isObject(value) {
return value instanceof Map
}
function isInteger(value) {
return value instanceof JsonNumber&&value.isInteger
}
function isFloat(value) {
return value instanceof JsonNumber&&!value.isInteger
}
function isPlace(value) {
if (!isInteger(value)) return false
if (value.text.startsWith("-")) return value.text==="-0"
return value.text.length<19||value.text.length===19&&value.text<"9223372036854775808"
}
function equalJson(one,other) {
if (one===other) return true
const left=asNumber(one)
const right=asNumber(other)
if (left!==null&&right!==null) return equalNumbers(left,right)
if (Array.isArray(one)&&Array.isArray(other)) return one.length===other.length&&one.every((item,at)=>equalJson(item,other[at]))
if (isObject(one)&&isObject(other)) {
if (one.size!==other.size) return false
for (const [key,value] of one) if (!other.has(key)||!equalJson(value,other.get(key))) return false
return true
}
return false
}
function asNumber(value) {
if (value instanceof JsonNumber) return value
return typeof value==="boolean"?new JsonNumber(value?"1":"0"):null
}
function equalNumbers(one,other) {
if (one.text===other.text) return true
if (one.isInteger&&other.isInteger) return BigInt(one.text)===BigInt(other.text)
if (!one.isInteger&&!other.isInteger) return one.value===other.value
const [whole,real]=one.isInteger?[one,other]:[other,one]
return Number.isInteger(real.value)&&BigInt(real.value)===BigInt(whole.text)
}
// src/verify/options.ts
var Stopped=class extends Error {}
var NotJudged=class extends Error {}
var ProgressMeter=class {
bytes=0
records=0
constructor(options,totalBytes) {
this.options=options
this.totalBytes=totalBytes
}
add(records,bytes) {
this.records+=records
this.bytes=Math.min(this.bytes+bytes,this.totalBytes)
if (this.options.signal?.aborted) throw new Stopped("stopped by the reader")
this.options.progress?.({records:this.records,bytes:this.bytes,totalBytes:this.totalBytes})
}
}
var ed25519_default={"cases":[{"public":"17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db","message":"abababababababababababababababababababababababababababababababab","signature":"7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32a45794e70adf14ff24b7d2f9d21aa747bf7ee35d30b457a92b4a5b451635a8402","valid":true},{"public":"17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db","message":"abababababababababababababababababababababababababababababababab","signature":"7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32a46794e70adf14ff24b7d2f9d21aa747bf7ee35d30b457a92b4a5b451635a8402","valid":false},{"public":"17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db","message":"abababababababababababababababababababababababababababababababab","signature":"7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c3aa45794e70adf14ff24b7d2f9d21aa747bf7ee35d30b457a92b4a5b451635a8402","valid":false},{"public":"17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d35b","message":"abababababababababababababababababababababababababababababababab","signature":"7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32a45794e70adf14ff24b7d2f9d21aa747bf7ee35d30b457a92b4a5b451635a8402","valid":false},{"public":"d63c01223147541df4e170763e9e2788a8bf5971f52a93c5829dbe6f5ff6bba9","message":"abababababababababababababababababababababababababababababababab","signature":"7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32addb10045b6baf45dae10d700b83882148514174774e44e45482e82f0cedbda08","valid":false},{"public":"17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db","message":"abababababababababababababababababababababababababababababababab","signature":"6999d5cb5126005c325892f1c6eab824b310708befff12fbaf45dda050cb12f001714052d4d123999d3481ef433eae6141387b7f29e22534cb5438fd0a9bca01","valid":false},{"public":"d63c01223147541df4e170763e9e2788a8bf5971f52a93c5829dbe6f5ff6bba9","message":"abababababababababababababababababababababababababababababababab","signature":"6999d5cb5126005c325892f1c6eab824b310708befff12fbaf45dda050cb12f039664a9d22f918f83b50feda34a733e78df948f23a997ef3c08031ca6d82e202","valid":false},{"public":"d63c01223147541df4e170763e9e2788a8bf5971f52a93c5829dbe6f5ff6bba9","message":"abababababababababababababababababababababababababababababababab","signature":"edc876d6831fd2105d0b4389ca2e283166469289146e2ce06faefe98b22548df3d7f9f4e98c44a359c41af028fa056a78d0c659c27e88c57d8a3e4c37e9d000b","valid":true},{"public":"d63c01223147541df4e170763e9e2788a8bf5971f52a93c5829dbe6f5ff6bba9","message":"abababababababababababababababababababababababababababababababab","signature":"08e8461bace82b50af65402ff1cad3d2399afe459544096a7f106c54fc875d42cafc071b07e4f68ea27d9dee2143ca5ecd8ef64970d7cf23dd88478147e27f04","valid":true},{"public":"0200000000000000000000000000000000000000000000000000000000000000","message":"abababababababababababababababababababababababababababababababab","signature":"7db0dc9222f3c183457ddde4c708de8e5ea6bf3d5c4404cca14b32729a05c32a0500000000000000000000000000000000000000000000000000000000000000","valid":false},{"public":"17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db","message":"abababababababababababababababababababababababababababababababab","signature":"02000000000000000000000000000000000000000000000000000000000000000500000000000000000000000000000000000000000000000000000000000000","valid":false}]}
var U32_MASK64=(()=>BigInt(2**32-1))()
var _32n=BigInt(32)
function fromBig(n,le=false) {
if (le) return {h:Number(n&U32_MASK64),l:Number(n>>_32n&U32_MASK64)}
return {h:Number(n>>_32n&U32_MASK64)|0,l:Number(n&U32_MASK64)|0}
}
function split(lst,le=false) {
const len=lst.length
let Ah=new Uint32Array(len)
let Al=new Uint32Array(len)
for (let i=0; i<len; i++) {
const {h,l}=fromBig(lst[i],le);
[Ah[i],Al[i]]=[h,l]
}
return [Ah,Al]
}
var fromNumH=n=>n/2**32|0
var fromNumL=n=>n>>>0
function setU64FromNum(view,byteOffset,n,isLE) {
const h=fromNumH(n)
const l=fromNumL(n)
view.setUint32(byteOffset,isLE?l:h,isLE)
view.setUint32(byteOffset+4,isLE?h:l,isLE)
}
var shrSH=(h,_l,s)=>h>>>s
var shrSL=(h,l,s)=>h<<32-s|l>>>s
var rotrSH=(h,l,s)=>h>>>s|l<<32-s
var rotrSL=(h,l,s)=>h<<32-s|l>>>s
var rotrBH=(h,l,s)=>h<<64-s|l>>>s-32
var rotrBL=(h,l,s)=>h>>>s-32|l<<64-s
function add(Ah,Al,Bh,Bl) {
const l=(Al>>>0)+(Bl>>>0)
return {h:Ah+Bh+(l/2**32|0)|0,l:l|0}
}
var add3L=(Al,Bl,Cl)=>(Al>>>0)+(Bl>>>0)+(Cl>>>0)
var add3H=(low,Ah,Bh,Ch)=>Ah+Bh+Ch+(low/2**32|0)|0
var add4L=(Al,Bl,Cl,Dl)=>(Al>>>0)+(Bl>>>0)+(Cl>>>0)+(Dl>>>0)
var add4H=(low,Ah,Bh,Ch,Dh)=>Ah+Bh+Ch+Dh+(low/2**32|0)|0
var add5L=(Al,Bl,Cl,Dl,El)=>(Al>>>0)+(Bl>>>0)+(Cl>>>0)+(Dl>>>0)+(El>>>0)
var add5H=(low,Ah,Bh,Ch,Dh,Eh)=>Ah+Bh+Ch+Dh+Eh+(low/2**32|0)|0
function isBytes$1(a) {
return a instanceof Uint8Array||ArrayBuffer.isView(a)&&a.constructor.name==="Uint8Array"&&"BYTES_PER_ELEMENT" in a&&a.BYTES_PER_ELEMENT===1
}
var atitle$1=title=>title?`"${title}" `:""
function anumber$1(n,title="") {
if (typeof n!=="number") throw new TypeError(atitle$1(title)+"expected number, got "+typeof n)
if (!Number.isSafeInteger(n)||n<0) throw new RangeError(atitle$1(title)+"expected integer >= 0, got "+n)
return n
}
function abool$1(value,title="") {
if (typeof value!=="boolean") throw new TypeError(atitle$1(title)+"expected boolean, got type="+typeof value)
return value
}
function abytes$1(value,length,title="") {
if (isBytes$1(value)&&(length===void 0||value.length===length)) return value
if (length!==void 0) anumber$1(length,"length")
const bytes=isBytes$1(value)
const ofLen=length!==void 0?` of length ${length}`:""
const got=bytes?`length=${value.length}`:`type=${typeof value}`
const message=atitle$1(title)+"expected Uint8Array"+ofLen+", got "+got
if (!bytes) throw new TypeError(message)
throw new RangeError(message)
}
var aobject$2=(value,label)=>{
if (value===null||typeof value!=="object"||Array.isArray(value)) throw new TypeError((label==="object"?"":`"${label}" `)+"expected object, got type="+typeof value)
}
var aopts=(value,label)=>{
aobject$2(value,label)
const proto=Object.getPrototypeOf(value)
if (proto!==Object.prototype&&proto!==null) throw new TypeError(`"${label}" expected plain object`)
if (Object.hasOwn(value,"__proto__")) throw new TypeError(`"${label}.__proto__" is not allowed`)
}
function aexists(instance,checkFinished=true) {
if (instance.destroyed) throw new Error("hash was destroyed")
if (checkFinished&&instance.finished) throw new Error("digest() was already called")
}
function aoutput(out,instance) {
abytes$1(out,void 0,"output")
const min=instance.outputLen
if (!(out.length>=min)) throw new RangeError("\"output\" expected length >= "+min)
}
function u32(arr) {
return new Uint32Array(arr.buffer,arr.byteOffset,Math.floor(arr.byteLength/4))
}
function clean(...arrays) {
for (let i=0; i<arrays.length; i++) arrays[i].fill(0)
}
function createView(arr) {
return new DataView(arr.buffer,arr.byteOffset,arr.byteLength)
}
function rotr(word,shift) {
return word<<32-shift|word>>>shift
}
var isLE=(()=>new Uint8Array(new Uint32Array([287454020]).buffer)[0]===68)()
function byteSwap(word) {
return word<<24&4278190080|word<<8&16711680|word>>>8&65280|word>>>24&255
}
function byteSwap32(arr) {
for (let i=0; i<arr.length; i++) arr[i]=byteSwap(arr[i])
return arr
}
var swap32IfBE=isLE?u=>u:byteSwap32
var hasHexBuiltin=(()=>typeof Uint8Array.from([]).toHex==="function"&&typeof Uint8Array.fromHex==="function")()
var hexes=Array.from({length:256},(_,i)=>i.toString(16).padStart(2,"0"))
function bytesToHex$1(bytes) {
abytes$1(bytes)
if (hasHexBuiltin) return bytes.toHex()
let hex=""
for (let i=0; i<bytes.length; i++) hex+=hexes[bytes[i]]
return hex
}
function asciiToBase16(ch) {
return ch>=48&&ch<=57?ch-48:ch>=65&&ch<=70?ch-55:ch>=97&&ch<=102?ch-87:void 0
}
function hexToBytes$1(hex) {
if (typeof hex!=="string") throw new TypeError("hex string expected, got "+typeof hex)
if (hasHexBuiltin) try {
return Uint8Array.fromHex(hex)
} catch (error) {
if (error instanceof SyntaxError) throw new RangeError(error.message)
throw error
}
const hl=hex.length
const al=hl/2
if (hl%2) throw new RangeError("hex string expected, got unpadded hex of length "+hl)
const array=new Uint8Array(al)
for (let ai=0,hi=0; ai<al; ai++,hi+=2) {
const n1=asciiToBase16(hex.charCodeAt(hi))
const n2=asciiToBase16(hex.charCodeAt(hi+1))
if (n1===void 0||n2===void 0) {
const char=hex[hi]+hex[hi+1]
throw new RangeError("hex string expected, got non-hex character \""+char+"\" at index "+hi)
}
array[ai]=n1*16+n2
}
return array
}
function concatBytes$1(...arrays) {
let sum=0
for (let i=0; i<arrays.length; i++) {
const a=arrays[i]
abytes$1(a)
sum+=a.length
}
const res=new Uint8Array(sum)
for (let i=0,pad=0; i<arrays.length; i++) {
const a=arrays[i]
res.set(a,pad)
pad+=a.length
}
return res
}
function checkOpts(defaults,opts,title="opts") {
aopts(defaults,"defaults")
if (opts!==void 0) aopts(opts,title)
return Object.assign(Object.create(null),defaults,opts)
}
function createHasher(hashCons,info={}) {
if (typeof hashCons!=="function") throw new TypeError("\"hashCons\" expected function, got type="+typeof hashCons)
info=checkOpts({},info,"info")
const hashC=(msg,opts)=>hashCons(opts).update(msg).digest()
const tmp=hashCons(void 0)
hashC.outputLen=tmp.outputLen
hashC.blockLen=tmp.blockLen
hashC.canXOF=tmp.canXOF
hashC.create=opts=>hashCons(opts)
Object.assign(hashC,info)
return Object.freeze(hashC)
}
function randomBytes$1(bytesLength=32) {
anumber$1(bytesLength,"bytesLength")
const cr=typeof globalThis==="object"?globalThis.crypto:null
if (typeof cr?.getRandomValues!=="function") throw new Error("crypto.getRandomValues must be defined")
if (bytesLength>65536) throw new RangeError(`"bytesLength" expected <= 65536, got ${bytesLength}`)
return cr.getRandomValues(new Uint8Array(bytesLength))
}
var oidNist=suffix=>({oid:Uint8Array.from([6,9,96,134,72,1,101,3,4,2,suffix])})
function Chi(a,b,c) {
return a&b^~a&c
}
function Maj(a,b,c) {
return a&b^a&c^b&c
}
var HashMD=class {
blockLen
outputLen
canXOF=false
padOffset
isLE
buffer
view
finished=false
length=0
pos=0
destroyed=false
constructor(blockLen,outputLen,padOffset,isLE) {
this.blockLen=blockLen
this.outputLen=outputLen
this.padOffset=padOffset
this.isLE=isLE
this.buffer=new Uint8Array(blockLen)
this.view=createView(this.buffer)
}
update(data) {
aexists(this)
abytes$1(data)
const {view,buffer,blockLen}=this
const len=data.length
let processed=false
for (let pos=0; pos<len;) {
const take=Math.min(blockLen-this.pos,len-pos)
if (take===blockLen) {
const dataView=createView(data)
for (; blockLen<=len-pos; pos+=blockLen) this.process(dataView,pos)
processed=true
continue
}
buffer.set(pos===0&&take===len?data:data.subarray(pos,pos+take),this.pos)
this.pos+=take
pos+=take
if (this.pos===blockLen) {
this.process(view,0)
this.pos=0
processed=true
}
}
this.length+=data.length
if (processed) this.roundClean()
return this
}
digestInto(out) {
aexists(this)
aoutput(out,this)
this.finished=true
const {buffer,view,blockLen,isLE}=this
let {pos}=this
buffer[pos++]=128
buffer.fill(0,pos)
if (this.padOffset>blockLen-pos) {
this.process(view,0)
buffer.fill(0)
}
setU64FromNum(view,blockLen-8,this.length*8,isLE)
this.process(view,0)
this.roundClean()
const oview=out===buffer?view:createView(out)
const len=this.outputLen
const outLen=len/4
const state=this.get()
if (len%4||outLen>state.length) throw new Error("invalid outputLen")
for (let i=0; i<outLen; i++) oview.setUint32(4*i,state[i],isLE)
}
digest() {
const {buffer,outputLen}=this
this.digestInto(buffer)
const res=buffer.slice(0,outputLen)
this.destroy()
return res
}
_cloneIntoMeta(to) {
const {buffer,length,finished,destroyed,pos}=this
to.destroyed=destroyed
to.finished=finished
to.length=length
to.pos=pos
if (pos) to.buffer.set(buffer)
return to
}
clone() {
return this._cloneInto()
}
}
var SHA256_IV=Uint32Array.from([1779033703,3144134277,1013904242,2773480762,1359893119,2600822924,528734635,1541459225])
var SHA512_IV=Uint32Array.from([1779033703,4089235720,3144134277,2227873595,1013904242,4271175723,2773480762,1595750129,1359893119,2917565137,2600822924,725511199,528734635,4215389547,1541459225,327033209])
var SHA256_K=Uint32Array.from([1116352408,1899447441,3049323471,3921009573,961987163,1508970993,2453635748,2870763221,3624381080,310598401,607225278,1426881987,1925078388,2162078206,2614888103,3248222580,3835390401,4022224774,264347078,604807628,770255983,1249150122,1555081692,1996064986,2554220882,2821834349,2952996808,3210313671,3336571891,3584528711,113926993,338241895,666307205,773529912,1294757372,1396182291,1695183700,1986661051,2177026350,2456956037,2730485921,2820302411,3259730800,3345764771,3516065817,3600352804,4094571909,275423344,430227734,506948616,659060556,883997877,958139571,1322822218,1537002063,1747873779,1955562222,2024104815,2227730452,2361852424,2428436474,2756734187,3204031479,3329325298])
var SHA256_W=new Uint32Array(64)
var SHA2_32B=class extends HashMD {
A=0
B=0
C=0
D=0
E=0
F=0
G=0
H=0
constructor(outputLen,IV) {
super(64,outputLen,8,false)
this.A=IV[0]|0
this.B=IV[1]|0
this.C=IV[2]|0
this.D=IV[3]|0
this.E=IV[4]|0
this.F=IV[5]|0
this.G=IV[6]|0
this.H=IV[7]|0
}
get() {
const {A,B,C,D,E,F,G,H}=this
return [A,B,C,D,E,F,G,H]
}
set(A,B,C,D,E,F,G,H) {
this.A=A|0
this.B=B|0
this.C=C|0
this.D=D|0
this.E=E|0
this.F=F|0
this.G=G|0
this.H=H|0
}
_cloneInto(to) {
(to||=new this.constructor()).set(...this.get())
return this._cloneIntoMeta(to)
}
process(view,offset) {
for (let i=0; i<16; i++,offset+=4) SHA256_W[i]=view.getUint32(offset,false)
for (let i=16; i<64; i++) {
const W15=SHA256_W[i-15]
const W2=SHA256_W[i-2]
const s0=rotr(W15,7)^rotr(W15,18)^W15>>>3
const s1=rotr(W2,17)^rotr(W2,19)^W2>>>10
SHA256_W[i]=s1+SHA256_W[i-7]+s0+SHA256_W[i-16]|0
}
let {A,B,C,D,E,F,G,H}=this
for (let i=0; i<64; i++) {
const sigma1=rotr(E,6)^rotr(E,11)^rotr(E,25)
const T1=H+sigma1+Chi(E,F,G)+SHA256_K[i]+SHA256_W[i]|0
const T2=(rotr(A,2)^rotr(A,13)^rotr(A,22))+Maj(A,B,C)|0
H=G
G=F
F=E
E=D+T1|0
D=C
C=B
B=A
A=T1+T2|0
}
A=A+this.A|0
B=B+this.B|0
C=C+this.C|0
D=D+this.D|0
E=E+this.E|0
F=F+this.F|0
G=G+this.G|0
H=H+this.H|0
this.set(A,B,C,D,E,F,G,H)
}
roundClean() {
clean(SHA256_W)
}
destroy() {
this.destroyed=true
this.set(0,0,0,0,0,0,0,0)
clean(this.buffer)
}
}
var _SHA256=class extends SHA2_32B {
constructor() {
super(32,SHA256_IV)
}
}
var K512=(()=>split(["0x428a2f98d728ae22","0x7137449123ef65cd","0xb5c0fbcfec4d3b2f","0xe9b5dba58189dbbc","0x3956c25bf348b538","0x59f111f1b605d019","0x923f82a4af194f9b","0xab1c5ed5da6d8118","0xd807aa98a3030242","0x12835b0145706fbe","0x243185be4ee4b28c","0x550c7dc3d5ffb4e2","0x72be5d74f27b896f","0x80deb1fe3b1696b1","0x9bdc06a725c71235","0xc19bf174cf692694","0xe49b69c19ef14ad2","0xefbe4786384f25e3","0x0fc19dc68b8cd5b5","0x240ca1cc77ac9c65","0x2de92c6f592b0275","0x4a7484aa6ea6e483","0x5cb0a9dcbd41fbd4","0x76f988da831153b5","0x983e5152ee66dfab","0xa831c66d2db43210","0xb00327c898fb213f","0xbf597fc7beef0ee4","0xc6e00bf33da88fc2","0xd5a79147930aa725","0x06ca6351e003826f","0x142929670a0e6e70","0x27b70a8546d22ffc","0x2e1b21385c26c926","0x4d2c6dfc5ac42aed","0x53380d139d95b3df","0x650a73548baf63de","0x766a0abb3c77b2a8","0x81c2c92e47edaee6","0x92722c851482353b","0xa2bfe8a14cf10364","0xa81a664bbc423001","0xc24b8b70d0f89791","0xc76c51a30654be30","0xd192e819d6ef5218","0xd69906245565a910","0xf40e35855771202a","0x106aa07032bbd1b8","0x19a4c116b8d2d0c8","0x1e376c085141ab53","0x2748774cdf8eeb99","0x34b0bcb5e19b48a8","0x391c0cb3c5c95a63","0x4ed8aa4ae3418acb","0x5b9cca4f7763e373","0x682e6ff3d6b2b8a3","0x748f82ee5defb2fc","0x78a5636f43172f60","0x84c87814a1f0ab72","0x8cc702081a6439ec","0x90befffa23631e28","0xa4506cebde82bde9","0xbef9a3f7b2c67915","0xc67178f2e372532b","0xca273eceea26619c","0xd186b8c721c0c207","0xeada7dd6cde0eb1e","0xf57d4f7fee6ed178","0x06f067aa72176fba","0x0a637dc5a2c898a6","0x113f9804bef90dae","0x1b710b35131c471b","0x28db77f523047d84","0x32caab7b40c72493","0x3c9ebe0a15c9bebc","0x431d67c49c100d4c","0x4cc5d4becb3e42b6","0x597f299cfc657e2a","0x5fcb6fab3ad6faec","0x6c44198c4a475817"].map(n=>BigInt(n))))()
var SHA512_Kh=(()=>K512[0])()
var SHA512_Kl=(()=>K512[1])()
var SHA512_W_H=new Uint32Array(80)
var SHA512_W_L=new Uint32Array(80)
var SHA2_64B=class extends HashMD {
Ah=0
Al=0
Bh=0
Bl=0
Ch=0
Cl=0
Dh=0
Dl=0
Eh=0
El=0
Fh=0
Fl=0
Gh=0
Gl=0
Hh=0
Hl=0
constructor(outputLen,IV) {
super(128,outputLen,16,false)
this.Ah=IV[0]|0
this.Al=IV[1]|0
this.Bh=IV[2]|0
this.Bl=IV[3]|0
this.Ch=IV[4]|0
this.Cl=IV[5]|0
this.Dh=IV[6]|0
this.Dl=IV[7]|0
this.Eh=IV[8]|0
this.El=IV[9]|0
this.Fh=IV[10]|0
this.Fl=IV[11]|0
this.Gh=IV[12]|0
this.Gl=IV[13]|0
this.Hh=IV[14]|0
this.Hl=IV[15]|0
}
get() {
const {Ah,Al,Bh,Bl,Ch,Cl,Dh,Dl,Eh,El,Fh,Fl,Gh,Gl,Hh,Hl}=this
return [Ah,Al,Bh,Bl,Ch,Cl,Dh,Dl,Eh,El,Fh,Fl,Gh,Gl,Hh,Hl]
}
set(Ah,Al,Bh,Bl,Ch,Cl,Dh,Dl,Eh,El,Fh,Fl,Gh,Gl,Hh,Hl) {
this.Ah=Ah|0
this.Al=Al|0
this.Bh=Bh|0
this.Bl=Bl|0
this.Ch=Ch|0
this.Cl=Cl|0
this.Dh=Dh|0
this.Dl=Dl|0
this.Eh=Eh|0
this.El=El|0
this.Fh=Fh|0
this.Fl=Fl|0
this.Gh=Gh|0
this.Gl=Gl|0
this.Hh=Hh|0
this.Hl=Hl|0
}
_cloneInto(to) {
(to||=new this.constructor()).set(...this.get())
return this._cloneIntoMeta(to)
}
process(view,offset) {
for (let i=0; i<16; i++,offset+=4) {
SHA512_W_H[i]=view.getUint32(offset)
SHA512_W_L[i]=view.getUint32(offset+=4)
}
for (let i=16; i<80; i++) {
const W15h=SHA512_W_H[i-15]|0
const W15l=SHA512_W_L[i-15]|0
const s0h=rotrSH(W15h,W15l,1)^rotrSH(W15h,W15l,8)^shrSH(W15h,W15l,7)
const s0l=rotrSL(W15h,W15l,1)^rotrSL(W15h,W15l,8)^shrSL(W15h,W15l,7)
const W2h=SHA512_W_H[i-2]|0
const W2l=SHA512_W_L[i-2]|0
const s1h=rotrSH(W2h,W2l,19)^rotrBH(W2h,W2l,61)^shrSH(W2h,W2l,6)
const SUMl=add4L(s0l,rotrSL(W2h,W2l,19)^rotrBL(W2h,W2l,61)^shrSL(W2h,W2l,6),SHA512_W_L[i-7],SHA512_W_L[i-16])
const SUMh=add4H(SUMl,s0h,s1h,SHA512_W_H[i-7],SHA512_W_H[i-16])
SHA512_W_H[i]=SUMh|0
SHA512_W_L[i]=SUMl|0
}
let {Ah,Al,Bh,Bl,Ch,Cl,Dh,Dl,Eh,El,Fh,Fl,Gh,Gl,Hh,Hl}=this
for (let i=0; i<80; i++) {
const sigma1h=rotrSH(Eh,El,14)^rotrSH(Eh,El,18)^rotrBH(Eh,El,41)
const sigma1l=rotrSL(Eh,El,14)^rotrSL(Eh,El,18)^rotrBL(Eh,El,41)
const CHIh=Eh&Fh^~Eh&Gh
const CHIl=El&Fl^~El&Gl
const T1ll=add5L(Hl,sigma1l,CHIl,SHA512_Kl[i],SHA512_W_L[i])
const T1h=add5H(T1ll,Hh,sigma1h,CHIh,SHA512_Kh[i],SHA512_W_H[i])
const T1l=T1ll|0
const sigma0h=rotrSH(Ah,Al,28)^rotrBH(Ah,Al,34)^rotrBH(Ah,Al,39)
const sigma0l=rotrSL(Ah,Al,28)^rotrBL(Ah,Al,34)^rotrBL(Ah,Al,39)
const MAJh=Ah&Bh^Ah&Ch^Bh&Ch
const MAJl=Al&Bl^Al&Cl^Bl&Cl
Hh=Gh|0
Hl=Gl|0
Gh=Fh|0
Gl=Fl|0
Fh=Eh|0
Fl=El|0;
({h:Eh,l:El}=add(Dh|0,Dl|0,T1h|0,T1l|0))
Dh=Ch|0
Dl=Cl|0
Ch=Bh|0
Cl=Bl|0
Bh=Ah|0
Bl=Al|0
const All=add3L(T1l,sigma0l,MAJl)
Ah=add3H(All,T1h,sigma0h,MAJh)
Al=All|0
}
({h:Ah,l:Al}=add(this.Ah|0,this.Al|0,Ah|0,Al|0));
({h:Bh,l:Bl}=add(this.Bh|0,this.Bl|0,Bh|0,Bl|0));
({h:Ch,l:Cl}=add(this.Ch|0,this.Cl|0,Ch|0,Cl|0));
({h:Dh,l:Dl}=add(this.Dh|0,this.Dl|0,Dh|0,Dl|0));
({h:Eh,l:El}=add(this.Eh|0,this.El|0,Eh|0,El|0));
({h:Fh,l:Fl}=add(this.Fh|0,this.Fl|0,Fh|0,Fl|0));
({h:Gh,l:Gl}=add(this.Gh|0,this.Gl|0,Gh|0,Gl|0));
({h:Hh,l:Hl}=add(this.Hh|0,this.Hl|0,Hh|0,Hl|0))
this.set(Ah,Al,Bh,Bl,Ch,Cl,Dh,Dl,Eh,El,Fh,Fl,Gh,Gl,Hh,Hl)
}
roundClean() {
clean(SHA512_W_H,SHA512_W_L)
}
destroy() {
this.destroyed=true
clean(this.buffer)
this.set(0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0)
}
}
var _SHA512=class extends SHA2_64B {
constructor() {
super(64,SHA512_IV)
}
}
var sha256=createHasher(()=>new _SHA256(),oidNist(1))
var sha512=createHasher(()=>new _SHA512(),oidNist(3));
// src/verify/sha3.ts
var BLOCK$2=136
var HASH_BYTES=32
var ROUNDS=24
var IOTA=new Int32Array(48)
for (let round=0,register=1; round<ROUNDS; round++) for (let power=0; power<7; power++) {
const bit=2**power-1
if (register&1) IOTA[2*round+(bit&1)]|=1<<(bit>>1)
register=register<<1^(register>>7)*369
}
function gatherEven(bits) {
let even=bits&1431655765
even=(even|even>>>1)&858993459
even=(even|even>>>2)&252645135
even=(even|even>>>4)&16711935
return (even|even>>>8)&65535
}
function spreadEven(half) {
let bits=half&65535
bits=(bits|bits<<8)&16711935
bits=(bits|bits<<4)&252645135
bits=(bits|bits<<2)&858993459
return (bits|bits<<1)&1431655765
}
function permute(state) {
let e0=state[0],o0=state[1],e1=state[2],o1=state[3],e2=state[4],o2=state[5],e3=state[6],o3=state[7],e4=state[8],o4=state[9]
let e5=state[10],o5=state[11],e6=state[12],o6=state[13],e7=state[14],o7=state[15],e8=state[16],o8=state[17],e9=state[18],o9=state[19]
let e10=state[20],o10=state[21],e11=state[22],o11=state[23],e12=state[24],o12=state[25],e13=state[26],o13=state[27],e14=state[28],o14=state[29]
let e15=state[30],o15=state[31],e16=state[32],o16=state[33],e17=state[34],o17=state[35],e18=state[36],o18=state[37],e19=state[38],o19=state[39]
let e20=state[40],o20=state[41],e21=state[42],o21=state[43],e22=state[44],o22=state[45],e23=state[46],o23=state[47],e24=state[48],o24=state[49]
for (let round=0; round<48; round+=2) {
const p0=e0^e5^e10^e15^e20,q0=o0^o5^o10^o15^o20
const p1=e1^e6^e11^e16^e21,q1=o1^o6^o11^o16^o21
const p2=e2^e7^e12^e17^e22,q2=o2^o7^o12^o17^o22
const p3=e3^e8^e13^e18^e23,q3=o3^o8^o13^o18^o23
const p4=e4^e9^e14^e19^e24,q4=o4^o9^o14^o19^o24
const s0=p4^(q1<<1|q1>>>31),t0=q4^p1
const s1=p0^(q2<<1|q2>>>31),t1=q0^p2
const s2=p1^(q3<<1|q3>>>31),t2=q1^p3
const s3=p2^(q4<<1|q4>>>31),t3=q2^p4
const s4=p3^(q0<<1|q0>>>31),t4=q3^p0
e0^=s0
o0^=t0
e1^=s1
o1^=t1
e2^=s2
o2^=t2
e3^=s3
o3^=t3
e4^=s4
o4^=t4
e5^=s0
o5^=t0
e6^=s1
o6^=t1
e7^=s2
o7^=t2
e8^=s3
o8^=t3
e9^=s4
o9^=t4
e10^=s0
o10^=t0
e11^=s1
o11^=t1
e12^=s2
o12^=t2
e13^=s3
o13^=t3
e14^=s4
o14^=t4
e15^=s0
o15^=t0
e16^=s1
o16^=t1
e17^=s2
o17^=t2
e18^=s3
o18^=t3
e19^=s4
o19^=t4
e20^=s0
o20^=t0
e21^=s1
o21^=t1
e22^=s2
o22^=t2
e23^=s3
o23^=t3
e24^=s4
o24^=t4
const f0=e0,g0=o0
const f1=e6<<22|e6>>>10,g1=o6<<22|o6>>>10
const f2=o12<<22|o12>>>10,g2=e12<<21|e12>>>11
const f3=o18<<11|o18>>>21,g3=e18<<10|e18>>>22
const f4=e24<<7|e24>>>25,g4=o24<<7|o24>>>25
const f5=e3<<14|e3>>>18,g5=o3<<14|o3>>>18
const f6=e9<<10|e9>>>22,g6=o9<<10|o9>>>22
const f7=o10<<2|o10>>>30,g7=e10<<1|e10>>>31
const f8=o16<<23|o16>>>9,g8=e16<<22|e16>>>10
const f9=o22<<31|o22>>>1,g9=e22<<30|e22>>>2
const f10=o1<<1|o1>>>31,g10=e1
const f11=e7<<3|e7>>>29,g11=o7<<3|o7>>>29
const f12=o13<<13|o13>>>19,g12=e13<<12|e13>>>20
const f13=e19<<4|e19>>>28,g13=o19<<4|o19>>>28
const f14=e20<<9|e20>>>23,g14=o20<<9|o20>>>23
const f15=o4<<14|o4>>>18,g15=e4<<13|e4>>>19
const f16=e5<<18|e5>>>14,g16=o5<<18|o5>>>14
const f17=e11<<5|e11>>>27,g17=o11<<5|o11>>>27
const f18=o17<<8|o17>>>24,g18=e17<<7|e17>>>25
const f19=e23<<28|e23>>>4,g19=o23<<28|o23>>>4
const f20=e2<<31|e2>>>1,g20=o2<<31|o2>>>1
const f21=o8<<28|o8>>>4,g21=e8<<27|e8>>>5
const f22=o14<<20|o14>>>12,g22=e14<<19|e14>>>13
const f23=o15<<21|o15>>>11,g23=e15<<20|e15>>>12
const f24=e21<<1|e21>>>31,g24=o21<<1|o21>>>31
e0=f0^~f1&f2^IOTA[round]
e1=f1^~f2&f3
e2=f2^~f3&f4
e3=f3^~f4&f0
e4=f4^~f0&f1
o0=g0^~g1&g2^IOTA[round+1]
o1=g1^~g2&g3
o2=g2^~g3&g4
o3=g3^~g4&g0
o4=g4^~g0&g1
e5=f5^~f6&f7
e6=f6^~f7&f8
e7=f7^~f8&f9
e8=f8^~f9&f5
e9=f9^~f5&f6
o5=g5^~g6&g7
o6=g6^~g7&g8
o7=g7^~g8&g9
o8=g8^~g9&g5
o9=g9^~g5&g6
e10=f10^~f11&f12
e11=f11^~f12&f13
e12=f12^~f13&f14
e13=f13^~f14&f10
e14=f14^~f10&f11
o10=g10^~g11&g12
o11=g11^~g12&g13
o12=g12^~g13&g14
o13=g13^~g14&g10
o14=g14^~g10&g11
e15=f15^~f16&f17
e16=f16^~f17&f18
e17=f17^~f18&f19
e18=f18^~f19&f15
e19=f19^~f15&f16
o15=g15^~g16&g17
o16=g16^~g17&g18
o17=g17^~g18&g19
o18=g18^~g19&g15
o19=g19^~g15&g16
e20=f20^~f21&f22
e21=f21^~f22&f23
e22=f22^~f23&f24
e23=f23^~f24&f20
e24=f24^~f20&f21
o20=g20^~g21&g22
o21=g21^~g22&g23
o22=g22^~g23&g24
o23=g23^~g24&g20
o24=g24^~g20&g21
}
state[0]=e0
state[1]=o0
state[2]=e1
state[3]=o1
state[4]=e2
state[5]=o2
state[6]=e3
state[7]=o3
state[8]=e4
state[9]=o4
state[10]=e5
state[11]=o5
state[12]=e6
state[13]=o6
state[14]=e7
state[15]=o7
state[16]=e8
state[17]=o8
state[18]=e9
state[19]=o9
state[20]=e10
state[21]=o10
state[22]=e11
state[23]=o11
state[24]=e12
state[25]=o12
state[26]=e13
state[27]=o13
state[28]=e14
state[29]=o14
state[30]=e15
state[31]=o15
state[32]=e16
state[33]=o16
state[34]=e17
state[35]=o17
state[36]=e18
state[37]=o18
state[38]=e19
state[39]=o19
state[40]=e20
state[41]=o20
state[42]=e21
state[43]=o21
state[44]=e22
state[45]=o22
state[46]=e23
state[47]=o23
state[48]=e24
state[49]=o24
}
function absorb(state,block,at) {
for (let lane=0; lane<BLOCK$2/8; lane++) {
const low=block.getInt32(at+8*lane,true),high=block.getInt32(at+8*lane+4,true)
state[2*lane]^=gatherEven(low)|gatherEven(high)<<16
state[2*lane+1]^=gatherEven(low>>>1)|gatherEven(high>>>1)<<16
}
permute(state)
}
function sha3(data) {
const state=new Int32Array(50)
const view=new DataView(data.buffer,data.byteOffset,data.length)
let at=0
for (; at+BLOCK$2<=data.length; at+=BLOCK$2) absorb(state,view,at)
const last=new Uint8Array(BLOCK$2)
last.set(data.subarray(at))
last[data.length-at]=6
last[135]|=128
absorb(state,new DataView(last.buffer),0)
const hash=new DataView(new ArrayBuffer(HASH_BYTES))
for (let lane=0; lane<HASH_BYTES/8; lane++) {
const even=state[2*lane],odd=state[2*lane+1]
hash.setInt32(8*lane,spreadEven(even)|spreadEven(odd)<<1,true)
hash.setInt32(8*lane+4,spreadEven(even>>>16)|spreadEven(odd>>>16)<<1,true)
}
return new Uint8Array(hash.buffer)
}
// src/verify/digest.ts
var HEX=Array.from({length:256},(_,byte)=>byte.toString(16).padStart(2,"0"))
function toHex$1(bytes) {
let out=""
for (const byte of bytes) out+=HEX[byte]
return out
}
function readDigit(unit) {
return unit<58?unit-48:(unit|32)-87
}
function fromHex(text) {
const bytes=new Uint8Array(text.length/2)
for (let at=0; at<bytes.length; at++) bytes[at]=16*readDigit(text.charCodeAt(2*at))+readDigit(text.charCodeAt(2*at+1))
return bytes
}
function sha3Hex(data) {
return toHex$1(sha3(data))
}
function sha256Bytes(data) {
return sha256(data)
}
function sha256Hex(data) {
return toHex$1(sha256(typeof data==="string"?encoder.encode(data):data))
}
function startSha256() {
const hash=sha256.create()
return {update:data=>void hash.update(data),hex:()=>toHex$1(hash.digest())}
}
function decodeBase64(text) {
const digits=text.endsWith("==")?text.slice(0,-2):text.endsWith("=")?text.slice(0,-1):text
if (text.length%4!==0||/[^A-Za-z0-9+/]/.test(digits)) return null
const units=atob(text)
const bytes=new Uint8Array(units.length)
for (let at=0; at<bytes.length; at++) bytes[at]=units.charCodeAt(at)
return bytes
}
var HEX64=/^[0-9a-f]{64}$/;
// src/verify/block.ts
var RESERVED_CHAINS=new Set(["meta","keys"])
var META_CHAIN="meta"
var KEYS_CHAIN="keys"
var IMPORT_DOMAIN="import"
var DOMAIN=/^[a-z0-9-]{1,32}$/
var CHAIN_ID=/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/
function readBlock(content) {
const block=at(content,"context","environment","aver")
return isObject(block)?block:null
}
function readKind(content) {
const kind=readBlock(content)?.get("kind")
if (typeof kind==="string") return kind
const type=content.get("type")
return type==="tool"?"call":type==="chat"?"turn":"record"
}
function at(value,...keys) {
for (const key of keys) {
if (!isObject(value)) return void 0
value=value.get(key)
}
return value
}
function splitChainName(name) {
const dot=name.indexOf(".")
return dot<0?[name,name]:[name.slice(0,dot),name.slice(dot+1)||name.slice(0,dot)]
}
function domainOf(name) {
return name.split(".",1)[0]
}
function chainName(domain,identifier) {
const id=CHAIN_ID.test(identifier)?identifier:`x-${sha256Hex(identifier).slice(0,32)}`
return DOMAIN.test(domain)?`${domain}.${id}`:null
}
// src/verify/canonical.ts
function canonicalJson(value) {
return write(value,WELL_FORMED,canonicalNumber,true,0)
}
function canonicalContent(value) {
if (!isObject(value)||!value.has("reasoning")) return canonicalJson(value)
const coerced=coerceFloatFields(value,number=>{
return Number.isFinite(number.value)?new JsonNumber(pythonRepr(number.value)):null
})
if (coerced===null) throw new NotCanonical("is too large for a float")
return canonicalJson(coerced)
}
function compactJson(value) {
return write(value,WELL_FORMED,canonicalNumber,false,0)
}
function asciiJson(value) {
return write(value,asciiString,canonicalNumber,true,0)
}
function plainJson(value) {
if (value instanceof JsonNumber) return value.text
if (Array.isArray(value)) return `[${value.map(plainJson).join(", ")}]`
if (isObject(value)) return `{${[...value].map(([name,item])=>`${JSON.stringify(name)}: ${plainJson(item)}`).join(", ")}}`
return JSON.stringify(value)
}
function canonicalNumber(number) {
if (number.isInteger) return number.text==="-0"?"0":number.text
return pythonRepr(number.value)
}
function pythonRepr(value) {
if (value===0) return Object.is(value,-0)?"-0.0":"0.0"
const size=Math.abs(value)
if (size>=1e-4&&size<0x2386f26fc10000) {
const text=String(value)
return text.includes(".")?text:`${text}.0`
}
const [mantissa="",exponent=""]=value.toExponential().split("e")
return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2,"0")}`
}
function write(value,string,number,sorted,depth) {
if (typeof value==="string") return string(value)
if (value===null) return "null"
if (typeof value==="boolean") return value?"true":"false"
if (value instanceof JsonNumber) return number(value)
if (depth>=200) throw new NotCanonical(`nested deeper than 200 levels`)
if (Array.isArray(value)) {
let out="["
for (let at=0; at<value.length; at++) out+=(at?",":"")+write(value[at],string,number,sorted,depth+1)
return `${out}]`
}
let out="{"
for (const key of sorted?sortedKeys(value):value.keys()) out+=`${out.length>1?",":""}${string(key)}:${write(value.get(key),string,number,sorted,depth+1)}`
return `${out}}`
}
var WELL_FORMED=text=>{
if (!text.isWellFormed()) throw new NotCanonical("holds a lone surrogate, which UTF-8 cannot carry")
return JSON.stringify(text)
}
function asciiString(text) {
return JSON.stringify(text).replace(/[\u007f-\uffff]/g,unit=>`\\u${unit.charCodeAt(0).toString(16).padStart(4,"0")}`)
}
function sortedKeys(value) {
const keys=[...value.keys()].sort()
return keys.some(key=>/[\ud800-\uffff]/.test(key))?keys.sort(compareCodePoints):keys
}
function sortTexts(texts) {
return [...texts].sort(compareCodePoints)
}
function splitOffKeys(data,keys) {
const document=parseDocument(data)
if (!isObject(document)) throw new Unreadable("a capsule must be a JSON object")
const numbers=new NumberSurvey()
numbers.look(document)
const parted=new Map()
for (const key of keys) {
const value=document.get(key)
if (value!==void 0) parted.set(key,value)
document.delete(key)
}
return {parted,forms:()=>iterateForms(document,numbers)}
}
function parseDocument(data) {
if (typeof data!=="string") {
if ([data[0],data[data.length-1]].some(byte=>byte===11||byte===12||isSpace(byte))&&(data.includes(11)||data.includes(12))) {
let start=0
let end=data.length
while (start<end&&isStripped$1(data[start])) start++
while (end>start&&isStripped$1(data[end-1])) end--
try {
const text=decodeUtf8(data.subarray(start,end))
const document=parseBounded(decodeBounded(text))
if (isObject(document)&&compactJson(document)===text) return document
} catch {}
}
}
return parseBounded(decodeBounded(data))
}
function isSpace(byte) {
return byte===32||byte===9||byte===10||byte===13
}
function isStripped$1(byte) {
return isSpace(byte)||byte===11||byte===12
}
var NumberSurvey=class {
isCanonical=true
isExact=true
look(value) {
if (value instanceof JsonNumber) {
if (canonicalNumber(value)===value.text) return
this.isCanonical=false
if (!value.isInteger) this.isExact=this.isExact&&isSameDecimal(value.text,pythonRepr(value.value))
} else if (Array.isArray(value)) for (const item of value) this.look(item)
else if (isObject(value)) for (const item of value.values()) this.look(item)
}
}
function isSameDecimal(one,other) {
const left=readDecimal(one)
const right=readDecimal(other)
return left!==null&&right!==null&&left===right
}
function readDecimal(text) {
const match=/^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/.exec(text)
if (match===null) return null
const [,sign="",whole="",fraction="",power="0"]=match
const digits=(whole+fraction).replace(/^0+/,"")
const trimmed=digits.replace(/0+$/,"")
if (trimmed==="") return "0"
if (power.length>18) return null
return `${sign}${trimmed}e${BigInt(power)-BigInt(fraction.length)+BigInt(digits.length-trimmed.length)}`
}
function* iterateForms(document,numbers) {
if (numbers.isExact) {
yield canonicalJson(document)
const coerced=coerceFloatFields(document,number=>{
return Number.isFinite(number.value)&&BigInt(number.text)===BigInt(number.value)?new JsonNumber(pythonRepr(number.value)):null
})
if (coerced!==null&&coerced!==document) yield canonicalJson(coerced)
}
if (numbers.isCanonical) return
const asWritten=value=>{
try {
return write(value,WELL_FORMED,number=>number.text,true,0)
} catch {
throw new Unreadable("a string holds a lone surrogate")
}
}
yield asWritten(document)
const coerced=coerceFloatFields(document,number=>new JsonNumber(`${number.text}.0`))
if (coerced!==null&&coerced!==document) yield asWritten(coerced)
}
function coerceFloatFields(content,toFloat) {
const reasoning=content.get("reasoning")
if (!isObject(reasoning)) return content
const changed=new Map(reasoning)
let isChanged=false
const confidence=reasoning.get("confidence")
if (isInteger(confidence)) {
const float=toFloat(confidence)
if (float===null) return null
changed.set("confidence",float)
isChanged=true
}
const options=reasoning.get("options")
if (Array.isArray(options)) {
const copies=[]
for (const option of options) {
const score=isObject(option)?option.get("feasibility"):void 0
if (isObject(option)&&isInteger(score)) {
const float=toFloat(score)
if (float===null) return null
copies.push(new Map(option).set("feasibility",float))
isChanged=true
} else copies.push(option)
}
changed.set("options",copies)
}
return isChanged?new Map(content).set("reasoning",changed):content
}
function aarray$1(item,title,inner=()=>{}) {
if (!Array.isArray(item)) throw new TypeError(`"${title}" expected array, got type=${typeof item}`)
for (let i=0; i<item.length; i++) inner(item[i],`${title}[${i}]`)
return item
}
var abytes=(value,length,title)=>abytes$1(value,length,title)
var anumber=anumber$1
function aobject$1(value,title="object") {
if (value===null||typeof value!=="object"||Array.isArray(value)) throw new TypeError(title==="object"?"expected valid options object":`"${title}" expected object, got type=${typeof value}`)
return value
}
function afunction(value,title) {
if (typeof value!=="function") throw new TypeError(`"${title}" is invalid: expected function, got ${typeof value}`)
return value
}
var bytesToHex=bytesToHex$1
var concatBytes=(...arrays)=>concatBytes$1(...arrays)
var hexToBytes=hex=>hexToBytes$1(hex)
var isBytes=isBytes$1
var randomBytes=bytesLength=>randomBytes$1(bytesLength)
var _0n$5=BigInt(0)
var _1n$5=BigInt(1)
var atitle=title=>title?`"${title}" `:""
function abool(value,title="") {
if (typeof value!=="boolean") throw new TypeError(atitle(title)+"expected boolean, got type="+typeof value)
return value
}
function abignumber(n) {
if (typeof n==="bigint") {
if (!isPosBig(n)) throw new RangeError("positive bigint expected, got "+n)
} else anumber(n)
return n
}
function asafenumber(value,title="") {
if (typeof value!=="number") {
const prefix=title&&`"${title}" `
throw new TypeError(prefix+"expected number, got type="+typeof value)
}
if (!Number.isSafeInteger(value)) {
const prefix=title&&`"${title}" `
throw new RangeError(prefix+"expected safe integer, got "+value)
}
}
function hexToNumber(hex) {
if (typeof hex!=="string") throw new TypeError("hex string expected, got "+typeof hex)
return hex===""?_0n$5:BigInt("0x"+hex)
}
function bytesToNumberBE(bytes) {
return hexToNumber(bytesToHex$1(bytes))
}
function bytesToNumberLE(bytes) {
return hexToNumber(bytesToHex$1(copyBytes(abytes$1(bytes)).reverse()))
}
function numberToBytesBE(n,len) {
anumber$1(len)
if (len===0) throw new Error("zero output length is invalid")
n=abignumber(n)
const expectedLen=len*2
const hex=n.toString(16)
if (hex.length>expectedLen) throw new RangeError("number is too large")
return hexToBytes$1(hex.padStart(expectedLen,"0"))
}
function numberToBytesLE(n,len) {
return numberToBytesBE(n,len).reverse()
}
function copyBytes(bytes) {
return Uint8Array.from(abytes(bytes))
}
function isPosBig(n) {
return typeof n==="bigint"&&_0n$5<=n
}
function inRange(n,min,max) {
return isPosBig(n)&&isPosBig(min)&&isPosBig(max)&&min<=n&&n<max
}
function aInRange(title,n,min,max) {
if (!inRange(n,min,max)) throw new RangeError("expected valid "+title+": "+min+" <= n < "+max+", got "+n)
}
function bitLen(n) {
if (n<_0n$5) throw new Error("expected non-negative bigint, got "+n)
return n===_0n$5?0:n.toString(2).length
}
var bitMask=n=>{
asafenumber(n,"n")
return (_1n$5<<BigInt(n))-_1n$5
}
function validateObject(object,fields={},optFields={},title="object") {
aobject$1(object,title)
aobject$1(fields,"fields")
aobject$1(optFields,"optFields")
function checkField(fieldName,expectedType,isOpt) {
const label=title==="object"?`param "${String(fieldName)}"`:`"${title}.${String(fieldName)}"`
const val=object[fieldName]
if (!Object.hasOwn(object,fieldName)&&(isOpt?val!==void 0:expectedType!=="function")) throw new TypeError(`${label} is invalid: expected own property`)
if (isOpt&&val===void 0) return
const current=typeof val
if (current!==expectedType||val===null) throw new TypeError(`${label} is invalid: expected ${expectedType}, got ${current}`)
}
const iter=(f,isOpt)=>Object.entries(f).forEach(([k,v])=>checkField(k,v,isOpt))
iter(fields,false)
iter(optFields,true)
}
var _0n$4=BigInt(0)
var _1n$4=BigInt(1)
var _2n$3=BigInt(2)
var _3n$1=BigInt(3)
var _4n$3=BigInt(4)
var _5n=BigInt(5)
var _7n$1=BigInt(7)
var _8n$1=BigInt(8)
var _9n=BigInt(9)
var _15n=BigInt(15)
var _16n=BigInt(16)
var POW_WINDOWED_MIN=BigInt("0x10000000000000000")
function mod(a,b) {
if (b<=_0n$4) throw new Error("mod: expected positive modulus, got "+b)
const result=a%b
return result>=_0n$4?result:b+result
}
function pow(num,power,modulo) {
if (modulo<=_1n$4) throw new Error("pow: expected modulus > 1, got "+modulo)
if (typeof power!=="bigint") throw new TypeError("invalid exponent: expected bigint, got "+typeof power)
if (power<_0n$4) throw new Error("invalid exponent, negatives unsupported")
if (power===_0n$4) return _1n$4
if (power===_1n$4) return num
let d=num%modulo
if (d<_0n$4) d+=modulo
if (power<POW_WINDOWED_MIN) {
let p=_1n$4
while (power>_0n$4) {
if (power&_1n$4) p=p*d%modulo
d=d*d%modulo
power>>=_1n$4
}
return p
}
const digits=[]
while (power>_0n$4) {
digits.push(Number(power&_15n))
power>>=_4n$3
}
const table=new Array(16)
table[0]=_1n$4
table[1]=d
for (let i=2; i<16; i++) table[i]=table[i-1]*d%modulo
let p=table[digits[digits.length-1]]
for (let w=digits.length-2; w>=0; w--) {
p=p*p%modulo
p=p*p%modulo
p=p*p%modulo
p=p*p%modulo
const digit=digits[w]
if (digit!==0) p=p*table[digit]%modulo
}
return p
}
function invert(number,modulo) {
if (number===_0n$4) throw new Error("invert: expected non-zero number")
if (modulo<=_1n$4) throw new Error("invert: expected modulus > 1, got "+modulo)
let a=mod(number,modulo)
let b=modulo
let x=_0n$4,u=_1n$4
while (a!==_0n$4) {
const q=b/a
const r=b-a*q
const m=x-u*q
b=a,a=r,x=u,u=m
}
if (b!==_1n$4) throw new Error("invert: does not exist")
return mod(x,modulo)
}
function assertIsSquare(Fp,root,n) {
const F=Fp
if (!F.eql(F.sqr(root),n)) throw new Error("Cannot find square root")
}
function aoddModulus(order,fnName) {
if ((order&_1n$4)===_0n$4) throw new Error(fnName+": expected odd modulus, got "+order)
}
function sqrt3mod4(Fp,n) {
const F=Fp
const p1div4=(F.ORDER+_1n$4)/_4n$3
const root=F.pow(n,p1div4)
assertIsSquare(F,root,n)
return root
}
function sqrt5mod8(Fp,n) {
const F=Fp
const p5div8=(F.ORDER-_5n)/_8n$1
const n2=F.mul(n,_2n$3)
const v=F.pow(n2,p5div8)
const nv=F.mul(n,v)
const i=F.mul(F.mul(nv,_2n$3),v)
const root=F.mul(nv,F.sub(i,F.ONE))
assertIsSquare(F,root,n)
return root
}
function sqrt9mod16(P) {
const Fp_=Field(P)
const tn=tonelliShanks(P)
const c1=tn(Fp_,Fp_.neg(Fp_.ONE))
const c2=tn(Fp_,c1)
const c3=tn(Fp_,Fp_.neg(c1))
const c4=(P+_7n$1)/_16n
return ((Fp,n)=>{
const F=Fp
let tv1=F.pow(n,c4)
let tv2=F.mul(tv1,c1)
const tv3=F.mul(tv1,c2)
const tv4=F.mul(tv1,c3)
const e1=F.eql(F.sqr(tv2),n)
const e2=F.eql(F.sqr(tv3),n)
tv1=F.cmov(tv1,tv2,e1)
tv2=F.cmov(tv4,tv3,e2)
const e3=F.eql(F.sqr(tv2),n)
const root=F.cmov(tv1,tv2,e3)
assertIsSquare(F,root,n)
return root
})
}
function tonelliShanks(P) {
if (P<_3n$1) throw new Error("sqrt is not defined for small field")
aoddModulus(P,"tonelliShanks")
let Q=P-_1n$4
let S=0
while (Q%_2n$3===_0n$4) {
Q/=_2n$3
S++
}
let Z=_2n$3
const _Fp=Field(P)
while (FpLegendre(_Fp,Z)===1) if (Z++>1e3) throw new Error("Cannot find square root: probably non-prime P")
if (S===1) return sqrt3mod4
let cc=_Fp.pow(Z,Q)
const Q1div2=(Q+_1n$4)/_2n$3
return function tonelliSlow(Fp,n) {
const F=Fp
if (F.is0(n)) return n
if (FpLegendre(F,n)!==1) throw new Error("Cannot find square root")
let M=S
let c=F.mul(F.ONE,cc)
let t=F.pow(n,Q)
let R=F.pow(n,Q1div2)
while (!F.eql(t,F.ONE)) {
if (F.is0(t)) throw new Error("Cannot find square root: probably non-prime P")
let i=1
let t_tmp=F.sqr(t)
while (!F.eql(t_tmp,F.ONE)) {
i++
t_tmp=F.sqr(t_tmp)
if (i===M) throw new Error("Cannot find square root")
}
const exponent=_1n$4<<BigInt(M-i-1)
const b=F.pow(c,exponent)
M=i
c=F.sqr(b)
t=F.mul(t,c)
R=F.mul(R,b)
}
return R
}
}
function FpSqrt(P) {
aoddModulus(P,"Fp.sqrt")
if (P%_4n$3===_3n$1) return sqrt3mod4
if (P%_8n$1===_5n) return sqrt5mod8
if (P%_16n===_9n) return sqrt9mod16(P)
return tonelliShanks(P)
}
var FIELD_FIELDS=["create","isValid","is0","neg","inv","sqrt","sqr","eql","add","sub","mul","pow","div","addN","subN","mulN","sqrN"]
function validateField(field) {
aobject$1(field,"field")
if (typeof field.ORDER!=="bigint") throw new TypeError("param \"ORDER\" is invalid: expected bigint, got "+typeof field.ORDER)
asafenumber(field.BYTES,"BYTES")
asafenumber(field.BITS,"BITS")
for (const name of FIELD_FIELDS) afunction(field[name],"field."+name)
if (field.BYTES<1||field.BITS<1) throw new Error("invalid field: expected BYTES/BITS > 0")
if (field.ORDER<=_1n$4) throw new Error("invalid field: expected ORDER > 1, got "+field.ORDER)
return field
}
function FpInvertBatch(Fp,nums,passZero=false) {
validateField(Fp)
aarray$1(nums,"nums")
abool(passZero,"passZero")
const F=Fp
const inverted=new Array(nums.length).fill(passZero?F.ZERO:void 0)
const multipliedAcc=nums.reduce((acc,num,i)=>{
if (F.is0(num)) return acc
inverted[i]=acc
return F.mul(acc,num)
},F.ONE)
const invertedAcc=F.inv(multipliedAcc)
nums.reduceRight((acc,num,i)=>{
if (F.is0(num)) return acc
inverted[i]=F.mul(acc,inverted[i])
return F.mul(acc,num)
},invertedAcc)
return inverted
}
function FpLegendre(Fp,n) {
validateField(Fp)
const F=Fp
aoddModulus(F.ORDER,"FpLegendre")
const p1mod2=(F.ORDER-_1n$4)/_2n$3
const powered=F.pow(n,p1mod2)
const yes=F.eql(powered,F.ONE)
const zero=F.eql(powered,F.ZERO)
const no=F.eql(powered,F.neg(F.ONE))
if (!yes&&!zero&&!no) throw new Error("invalid Legendre symbol result")
return yes?1:zero?0:-1
}
function nLength(n,nBitLength) {
if (nBitLength!==void 0) anumber(nBitLength)
if (n<=_0n$4) throw new Error("invalid n length: expected positive n, got "+n)
if (nBitLength!==void 0&&nBitLength<1) throw new Error("invalid n length: expected positive bit length, got "+nBitLength)
const bits=bitLen(n)
if (nBitLength!==void 0&&nBitLength<bits) throw new Error(`invalid n length: expected nBitLength (${nBitLength}) >= bitLen(n) (${bits})`)
const _nBitLength=nBitLength!==void 0?nBitLength:bits
return {nBitLength:_nBitLength,nByteLength:Math.ceil(_nBitLength/8)}
}
var FIELD_SQRT=new WeakMap()
var _Field=class {
ORDER
BITS
BYTES
isLE
ZERO=_0n$4
ONE=_1n$4
_lengths
_mod
constructor(ORDER,opts={}) {
if (ORDER<=_1n$4) throw new Error("invalid field: expected ORDER > 1, got "+ORDER)
let _nbitLength=void 0
this.isLE=false
if (opts!=null&&typeof opts==="object") {
if (typeof opts.BITS==="number") _nbitLength=opts.BITS
if (typeof opts.sqrt==="function") Object.defineProperty(this,"sqrt",{value:opts.sqrt,enumerable:true})
if (typeof opts.isLE==="boolean") this.isLE=opts.isLE
if (opts.allowedLengths) this._lengths=Object.freeze(opts.allowedLengths.slice())
if (typeof opts.modFromBytes==="boolean") this._mod=opts.modFromBytes
}
const {nBitLength,nByteLength}=nLength(ORDER,_nbitLength)
if (nByteLength>2048) throw new Error("invalid field: expected ORDER of <= 2048 bytes")
this.ORDER=ORDER
this.BITS=nBitLength
this.BYTES=nByteLength
Object.freeze(this)
}
create(num) {
return mod(num,this.ORDER)
}
isValid(num) {
if (typeof num!=="bigint") throw new TypeError("invalid field element: expected bigint, got "+typeof num)
return _0n$4<=num&&num<this.ORDER
}
is0(num) {
return num===_0n$4
}
isValidNot0(num) {
return !this.is0(num)&&this.isValid(num)
}
isOdd(num) {
return (num&_1n$4)===_1n$4
}
neg(num) {
return mod(-num,this.ORDER)
}
eql(lhs,rhs) {
return lhs===rhs
}
sqr(num) {
return mod(num*num,this.ORDER)
}
add(lhs,rhs) {
return mod(lhs+rhs,this.ORDER)
}
sub(lhs,rhs) {
return mod(lhs-rhs,this.ORDER)
}
mul(lhs,rhs) {
return mod(lhs*rhs,this.ORDER)
}
pow(num,power) {
return pow(num,power,this.ORDER)
}
div(lhs,rhs) {
return mod(lhs*invert(rhs,this.ORDER),this.ORDER)
}
sqrN(num) {
return num*num
}
addN(lhs,rhs) {
return lhs+rhs
}
subN(lhs,rhs) {
return lhs-rhs
}
mulN(lhs,rhs) {
return lhs*rhs
}
inv(num) {
return invert(num,this.ORDER)
}
sqrt(num) {
let sqrt=FIELD_SQRT.get(this)
if (!sqrt) FIELD_SQRT.set(this,sqrt=FpSqrt(this.ORDER))
return sqrt(this,num)
}
toBytes(num) {
return this.isLE?numberToBytesLE(num,this.BYTES):numberToBytesBE(num,this.BYTES)
}
fromBytes(bytes,skipValidation=false) {
abytes(bytes)
const {_lengths:allowedLengths,BYTES,isLE,ORDER,_mod:modFromBytes}=this
if (allowedLengths) {
if (bytes.length<1||!allowedLengths.includes(bytes.length)||bytes.length>BYTES) throw new Error("Field.fromBytes: expected "+allowedLengths+" bytes, got "+bytes.length)
const padded=new Uint8Array(BYTES)
padded.set(bytes,isLE?0:padded.length-bytes.length)
bytes=padded
}
if (bytes.length!==BYTES) throw new Error("Field.fromBytes: expected "+BYTES+" bytes, got "+bytes.length)
let scalar=isLE?bytesToNumberLE(bytes):bytesToNumberBE(bytes)
if (modFromBytes) scalar=mod(scalar,ORDER)
if (!skipValidation) {
if (!this.isValid(scalar)) throw new Error("invalid field element: outside of range 0..ORDER")
}
return scalar
}
invertBatch(lst) {
return FpInvertBatch(this,lst,true)
}
cmov(a,b,condition) {
abool(condition,"condition")
return condition?b:a
}
}
function Field(ORDER,opts={}) {
Object.freeze(_Field.prototype)
return new _Field(ORDER,opts)
}
var _0n$3=BigInt(0)
var _1n$3=BigInt(1)
var _4n$2=BigInt(4)
var BLIND_BYTES=16
var BLIND_BITS=128
var FW_WINDOW=5
var TABLE_BYTES_MAX=(()=>2**31)()
function validatePointCons(Point) {
const pc=Point
if (typeof pc!=="function") throw new TypeError("\"Point\" expected constructor, got type="+typeof Point)
afunction(pc.fromAffine,"Point.fromAffine")
afunction(pc.fromBytes,"Point.fromBytes")
afunction(pc.fromHex,"Point.fromHex")
aobject$1(pc.BASE,"Point.BASE")
aobject$1(pc.ZERO,"Point.ZERO")
validateField(pc.Fp)
validateField(pc.Fn)
}
function normalizeZ(c,points) {
validatePointCons(c)
validateMSMPoints(points,c)
const invertedZs=FpInvertBatch(c.Fp,points.map(p=>p.Z))
return points.map((p,i)=>c.fromAffine(p.toAffine(invertedZs[i])))
}
function validateW(W,bits,min=1) {
if (!Number.isSafeInteger(W)||W<min||W>bits) throw new Error("invalid window size, expected ["+min+".."+bits+"], got W="+W)
}
function validateTableBytes(numPoints,fpBytes) {
const bytes=numPoints*(4*fpBytes+128)
if (bytes>TABLE_BYTES_MAX) throw new Error("invalid window size: table would need ~"+Math.ceil(bytes/2**20)+" MiB, max "+TABLE_BYTES_MAX/2**20+" MiB")
}
function probeRandomBytes(randomBytes,length) {
if (randomBytes===void 0) return void 0
afunction(randomBytes,"randomBytes")
try {
const probe=randomBytes(length)
if (!isBytes(probe)||probe.length!==length) return void 0
} catch {
return
}
return randomBytes
}
function validateMSMPoints(points,c) {
aarray$1(points,"points")
points.forEach((p,i)=>{
if (!(p instanceof c)) throw new Error("invalid point at index "+i)
})
}
function validateMSMScalars(scalars,field,maxScalar) {
if (!Array.isArray(scalars)) throw new Error("array of scalars expected")
scalars.forEach((s,i)=>{
if (!(maxScalar===void 0?field.isValid(s):isPosBig(s)&&s<maxScalar)) throw new Error("invalid scalar at index "+i)
})
}
var pointWindowSizes=new WeakMap()
function getWindowSize(P) {
return pointWindowSizes.get(P)||1
}
function oddMultiples(p,size) {
const dbl=p.double()
const t=[p]
for (let j=1; j<size; j++) t.push(t[j-1].add(dbl))
return t
}
function wnafDigits(n,W) {
const size=2**W
const half=size/2
const mask=BigInt(size-1)
const d=[]
while (n>_0n$3) {
let w=0
if (n&_1n$3) {
w=Number(n&mask)
if (w>=half) w-=size
n-=BigInt(w)
}
d.push(w)
n>>=_1n$3
}
return d
}
function signedWindowDigits(n,W,windows) {
const size=2**W
const half=size/2
const mask=BigInt(size-1)
const shiftBy=BigInt(W)
const d=[]
for (let w=0; w<windows; w++) {
let v=Number(n&mask)
n>>=shiftBy
if (v>half) {
v-=size
n+=_1n$3
}
d.push(v)
}
if (n!==_0n$3) throw new Error("invalid wnaf")
return d
}
function wnafWalk(zero,tables,digits) {
let max=0
for (const d of digits) max=Math.max(max,d.length)
let acc=zero
for (let bit=max-1; bit>=0; bit--) {
if (bit!==max-1) acc=acc.double()
for (let i=0; i<digits.length; i++) {
const w=digits[i][bit]
if (w) {
const item=tables[i][Math.abs(w)-1>>1]
acc=acc.add(w<0?item.negate():item)
}
}
}
return acc
}
var ScalarMultiplier=class {
Point
BASE
ZERO
randomBytes
wnafPrecomputes=new WeakMap()
baseCanBeBlinded
bits
constructor(Point,randomBytes) {
validatePointCons(Point)
this.randomBytes=probeRandomBytes(randomBytes,BLIND_BYTES)
this.Point=Point
this.BASE=Point.BASE
this.ZERO=Point.ZERO
this.bits=Point.Fn.BITS
}
buildWnafTable(point,W,bits) {
const windows=Math.ceil(bits/W)+1
const half=2**(W-1)
const comp=[]
let base=point
for (let w=0; w<windows; w++) {
let acc=base
for (let i=0; i<half; i++) {
comp.push(acc)
acc=acc.add(base)
}
base=comp[comp.length-1].double()
}
return {W,bits,windows,comp}
}
wnafCachedCT(precomputes,n) {
const {W,windows,comp}=precomputes
const half=2**(W-1)
const digits=signedWindowDigits(n,W,windows)
let p=this.ZERO
let f=this.BASE
for (let w=0; w<windows; w++) {
const digit=digits[w]
const start=w*half
const idx=Math.abs(digit)-1
let sel=comp[start]
for (let i=1; i<half; i++) sel=i===idx?comp[start+i]:sel
const neg=sel.negate()
if (digit===0) f=f.add(comp[start])
else p=p.add(digit<0?neg:sel)
}
return {p,f}
}
getWnafPrecomputes(W,point,bits,transform) {
let entries=this.wnafPrecomputes.get(point)
let comp=entries?.find(entry=>entry.W===W&&entry.bits===bits)
if (!comp) {
comp=this.buildWnafTable(point,W,bits)
if (typeof transform==="function") comp={...comp,comp:transform(comp.comp)}
if (!entries) {
entries=[]
this.wnafPrecomputes.set(point,entries)
}
entries.push(comp)
}
return comp
}
assertPoint(point) {
if (!(point instanceof this.Point)) throw new TypeError("\"point\" expected Point instance, got type="+typeof point)
}
validateMulInput(point,scalar) {
this.assertPoint(point)
if (!inRange(scalar,_1n$3,this.Point.Fn.ORDER)) throw new Error("invalid scalar")
}
runCT(point,n,bits,transform) {
const W=getWindowSize(point)
if (W===1) return this.fixedWindowCT(point,n,bits)
return this.wnafCachedCT(this.getWnafPrecomputes(W,point,bits,transform),n)
}
mulCT(point,scalar,transform) {
this.validateMulInput(point,scalar)
return this.runCT(point,scalar,this.bits,transform)
}
mulCTBlinded(point,scalar,transform) {
this.validateMulInput(point,scalar)
if (this.randomBytes===void 0) throw new Error("randomBytes is required for scalar blinding")
const bits=this.Point.Fn.BITS+BLIND_BITS
const blind=this.randomBytes(BLIND_BYTES)
if (!isBytes(blind)||blind.length!==BLIND_BYTES) throw new Error("randomBytes returned invalid byte array")
blind[0]=blind[0]&63|128
const n=scalar+bytesToNumberBE(blind)*this.Point.Fn.ORDER
return this.runCT(point,n,bits,transform)
}
fixedWindowCT(point,n,bits) {
const W=FW_WINDOW
const size=32
const mask=bitMask(W)
const table=new Array(size)
table[0]=this.ZERO
for (let i=1; i<size; i++) table[i]=table[i-1].add(point)
const windows=Math.ceil(bits/W)
let acc=this.ZERO
for (let window=windows-1; window>=0; window--) {
if (window!==windows-1) for (let d=0; d<W; d++) acc=acc.double()
const digit=Number(n>>BigInt(window*W)&mask)
let sel=table[0]
for (let i=1; i<size; i++) sel=i===digit?table[i]:sel
acc=acc.add(sel)
}
return {p:acc,f:acc}
}
shouldBlind(point,cofactor) {
if (this.randomBytes===void 0) return false
if (cofactor===_1n$3) return true
if (point!==this.BASE) return false
if (this.baseCanBeBlinded===void 0) this.baseCanBeBlinded=this.mulUnsafe(this.BASE,this.Point.Fn.ORDER).is0()
return this.baseCanBeBlinded
}
mulSecret(point,scalar,cofactor,transform) {
return this.shouldBlind(point,cofactor)?this.mulCTBlinded(point,scalar,transform):this.mulCT(point,scalar,transform)
}
mulUnsafe(point,scalar,transform) {
this.assertPoint(point)
if (!isPosBig(scalar)) throw new Error("invalid scalar")
const W=getWindowSize(point)
if (W===1||scalar>=this.Point.Fn.ORDER) return mulAddUnsafe(this.Point,[point],[scalar],true)
const precomputes=this.getWnafPrecomputes(W,point,this.bits,transform)
return this.wnafCachedCT(precomputes,scalar).p
}
setWindowSize(point,W) {
this.assertPoint(point)
validateW(W,this.bits)
validateTableBytes((Math.ceil((this.bits+BLIND_BITS)/W)+1)*2**(W-1),this.Point.Fp.BYTES)
pointWindowSizes.set(point,W)
this.wnafPrecomputes.delete(point)
}
hasWindowSize(point) {
return getWindowSize(point)!==1
}
}
function mulAddUnsafe(c,points,scalars,allowOversized=false) {
validatePointCons(c)
validateMSMPoints(points,c)
abool(allowOversized,"allowOversized")
validateMSMScalars(scalars,c.Fn,allowOversized?c.Fn.ORDER**_4n$2:void 0)
if (points.length!==scalars.length) throw new Error("arrays of points and scalars must have equal length")
const tables=points.map(p=>oddMultiples(p,4))
const digits=scalars.map(n=>wnafDigits(n,4))
return wnafWalk(c.ZERO,tables,digits)
}
function createField(order,field,isLE) {
if (field) {
if (field.ORDER!==order) throw new Error("Field.ORDER must match order: Fp == p, Fn == n")
validateField(field)
return field
} else return Field(order,{isLE})
}
function createCurveFields(type,CURVE,curveOpts={},FpFnLE) {
if (type!=="weierstrass"&&type!=="edwards") throw new Error("expected curve type \"weierstrass\" or \"edwards\"")
if (FpFnLE===void 0) FpFnLE=type==="edwards"
if (!CURVE||typeof CURVE!=="object") throw new Error(`expected valid ${type} CURVE object`)
validateObject(curveOpts)
for (const p of ["p","n","h"]) {
const val=CURVE[p]
if (!(isPosBig(val)&&val!==_0n$3)) throw new Error(`CURVE.${p} must be positive bigint`)
}
const Fp=createField(CURVE.p,curveOpts.Fp,FpFnLE)
const Fn=createField(CURVE.n,curveOpts.Fn,FpFnLE)
const params=["Gx","Gy","a",type==="weierstrass"?"b":"d"]
for (const p of params) if (!Fp.isValid(CURVE[p])) throw new Error(`CURVE.${p} must be valid field element of CURVE.Fp`)
CURVE=Object.freeze(Object.assign({},CURVE))
return {CURVE,Fp,Fn}
}
var _0n$2=BigInt(0)
var _1n$2=BigInt(1)
var _2n$2=BigInt(2)
var _4n$1=BigInt(4)
var _8n=BigInt(8)
function isEdValidXY(Fp,CURVE,x,y) {
const x2=Fp.sqr(x)
const y2=Fp.sqr(y)
const left=Fp.add(Fp.mul(CURVE.a,x2),y2)
const right=Fp.add(Fp.ONE,Fp.mul(CURVE.d,Fp.mul(x2,y2)))
return Fp.eql(left,right)
}
function edwards(params,extraOpts={}) {
validateObject(extraOpts,{},{},"extraOpts")
const opts=extraOpts
const validated=createCurveFields("edwards",params,opts,opts.FpFnLE)
const {Fp,Fn}=validated
let CURVE=validated.CURVE
const {h:cofactor}=CURVE
if (FpLegendre(Fp,CURVE.a)!==1) throw new Error("edwards: CURVE.a must be a square in Fp for complete addition formulas")
if (FpLegendre(Fp,CURVE.d)!==-1) throw new Error("edwards: CURVE.d must be a non-square in Fp for complete addition formulas")
validateObject(opts,{},{uvRatio:"function",randomBytes:"function"})
const randomBytes$4=opts.randomBytes===void 0?randomBytes:opts.randomBytes
const MASK=_2n$2<<BigInt(Fp.BYTES*8)-_1n$2
function isOdd(n) {
if (!Fp.isOdd) throw new Error("Field does not have .isOdd()")
return Fp.isOdd(n)
}
const uvRatio=opts.uvRatio===void 0?(u,v)=>{
try {
return {isValid:true,value:Fp.sqrt(Fp.div(u,v))}
} catch (e) {
return {isValid:false,value:_0n$2}
}
}:opts.uvRatio
if (!isEdValidXY(Fp,CURVE,CURVE.Gx,CURVE.Gy)) throw new Error("bad curve params: generator point")
const mulA=Fp.eql(CURVE.a,Fp.neg(Fp.ONE))?x=>Fp.neg(x):Fp.eql(CURVE.a,Fp.ONE)?x=>x:x=>Fp.mul(CURVE.a,x)
function acoord(title,n,banZero=false) {
const min=banZero?_1n$2:_0n$2
aInRange("coordinate "+title,n,min,MASK)
return n
}
function aedpoint(other) {
if (!(other instanceof Point)) throw new Error("EdwardsPoint expected")
}
class Point {
static BASE=new Point(CURVE.Gx,CURVE.Gy,Fp.ONE,Fp.mul(CURVE.Gx,CURVE.Gy))
static ZERO=new Point(Fp.ZERO,Fp.ONE,Fp.ONE,Fp.ZERO)
static Fp=Fp
static Fn=Fn
X
Y
Z
T
constructor(X,Y,Z,T) {
this.X=acoord("x",X)
this.Y=acoord("y",Y)
this.Z=acoord("z",Z,true)
this.T=acoord("t",T)
Object.freeze(this)
}
static CURVE() {
return CURVE
}
static fromAffine(p) {
if (p instanceof Point) throw new Error("extended point not allowed")
const {x,y}=p||{}
acoord("x",x)
acoord("y",y)
return new Point(x,y,Fp.ONE,Fp.mul(x,y))
}
static fromBytes(bytes,zip215=false) {
const len=Fp.BYTES
const {a,d}=CURVE
bytes=copyBytes(abytes(bytes,len,"point"))
abool(zip215,"zip215")
const normed=copyBytes(bytes)
const lastByte=bytes[len-1]
normed[len-1]=lastByte&-129
const y=bytesToNumberLE(normed)
aInRange("point.y",y,_0n$2,zip215?MASK:Fp.ORDER)
const y2=Fp.sqr(y)
const u=Fp.sub(y2,Fp.ONE)
const v=Fp.sub(Fp.mulN(d,y2),a)
let {isValid,value:x}=uvRatio(u,v)
if (!isValid) throw new Error("bad point: invalid y coordinate")
const isXOdd=isOdd(x)
const isLastByteOdd=(lastByte&128)!==0
if (!zip215&&Fp.is0(x)&&isLastByteOdd) throw new Error("bad point: x=0 and x_0=1")
if (isLastByteOdd!==isXOdd) x=Fp.neg(x)
return Point.fromAffine({x,y})
}
static fromHex(hex,zip215=false) {
return Point.fromBytes(hexToBytes(hex),zip215)
}
get x() {
return this.toAffine().x
}
get y() {
return this.toAffine().y
}
precompute(windowSize=6,isLazy=true) {
wnaf.setWindowSize(this,windowSize)
if (!isLazy) this.multiply(_2n$2)
return this
}
assertValidity() {
const p=this
const {a,d}=CURVE
if (p.is0()) throw new Error("bad point: ZERO")
const {X,Y,Z,T}=p
const X2=Fp.sqr(X)
const Y2=Fp.sqr(Y)
const Z2=Fp.sqr(Z)
const Z4=Fp.sqr(Z2)
const aX2=Fp.mul(X2,a)
const left=Fp.mul(Fp.add(aX2,Y2),Z2)
const right=Fp.add(Z4,Fp.mul(d,Fp.mul(X2,Y2)))
if (!Fp.eql(left,right)) throw new Error("bad point: equation left != right (1)")
const XY=Fp.mul(X,Y)
const ZT=Fp.mul(Z,T)
if (!Fp.eql(XY,ZT)) throw new Error("bad point: equation left != right (2)")
}
equals(other) {
aedpoint(other)
const {X:X1,Y:Y1,Z:Z1}=this
const {X:X2,Y:Y2,Z:Z2}=other
const X1Z2=Fp.mul(X1,Z2)
const X2Z1=Fp.mul(X2,Z1)
const Y1Z2=Fp.mul(Y1,Z2)
const Y2Z1=Fp.mul(Y2,Z1)
return Fp.eql(X1Z2,X2Z1)&&Fp.eql(Y1Z2,Y2Z1)
}
is0() {
return this.equals(Point.ZERO)
}
negate() {
return new Point(Fp.neg(this.X),this.Y,this.Z,Fp.neg(this.T))
}
double() {
const {X:X1,Y:Y1,Z:Z1}=this
const A=Fp.sqr(X1)
const B=Fp.sqr(Y1)
const C=Fp.mul(Fp.sqr(Z1),_2n$2)
const D=mulA(A)
const x1y1=Fp.addN(X1,Y1)
const E=Fp.sub(Fp.subN(Fp.sqr(x1y1),A),B)
const G=Fp.addN(D,B)
const F=Fp.subN(G,C)
const H=Fp.subN(D,B)
const X3=Fp.mul(E,F)
const Y3=Fp.mul(G,H)
const T3=Fp.mul(E,H)
const Z3=Fp.mul(F,G)
return new Point(X3,Y3,Z3,T3)
}
add(other) {
aedpoint(other)
const {d}=CURVE
const {X:X1,Y:Y1,Z:Z1,T:T1}=this
const {X:X2,Y:Y2,Z:Z2,T:T2}=other
const A=Fp.mul(X1,X2)
const B=Fp.mul(Y1,Y2)
const C=Fp.mul(Fp.mulN(T1,d),T2)
const D=Fp.mul(Z1,Z2)
const E=Fp.sub(Fp.subN(Fp.mulN(Fp.addN(X1,Y1),Fp.addN(X2,Y2)),A),B)
const F=Fp.subN(D,C)
const G=Fp.addN(D,C)
const H=Fp.sub(B,mulA(A))
const X3=Fp.mul(E,F)
const Y3=Fp.mul(G,H)
const T3=Fp.mul(E,H)
const Z3=Fp.mul(F,G)
return new Point(X3,Y3,Z3,T3)
}
subtract(other) {
aedpoint(other)
return this.add(other.negate())
}
multiply(scalar) {
if (!Fn.isValidNot0(scalar)) throw new RangeError("invalid scalar: expected 1 <= sc < curve.n")
const {p,f}=wnaf.mulSecret(this,scalar,cofactor,normalize)
return normalize([p,f])[0]
}
multiplyUnsafe(scalar) {
if (!Fn.isValid(scalar)) throw new RangeError("invalid scalar: expected 0 <= sc < curve.n")
if (scalar===_0n$2) return Point.ZERO
if (this.is0()||scalar===_1n$2) return this
return wnaf.mulUnsafe(this,scalar,normalize)
}
isSmallOrder() {
return this.clearCofactor().is0()
}
isTorsionFree() {
return wnaf.mulUnsafe(this,CURVE.n).is0()
}
toAffine(invertedZ) {
const p=this
let iz=invertedZ
if (iz!=null&&typeof iz!=="bigint") throw new TypeError("\"invertedZ\" expected bigint, got type="+typeof iz)
const {X,Y,Z}=p
const is0=p.is0()
if (iz==null) iz=is0?Fp.create(_8n):Fp.inv(Z)
const x=Fp.mul(X,iz)
const y=Fp.mul(Y,iz)
const zz=Fp.mul(Z,iz)
if (is0) return {x:Fp.ZERO,y:Fp.ONE}
if (!Fp.eql(zz,Fp.ONE)) throw new Error("invZ was invalid")
return {x,y}
}
clearCofactor() {
if (cofactor===_1n$2) return this
if (cofactor===_2n$2) return this.double()
if (cofactor===_4n$1) return this.double().double()
if (cofactor===_8n) return this.double().double().double()
return this.multiplyUnsafe(cofactor)
}
toBytes() {
const {x,y}=this.toAffine()
const bytes=Fp.toBytes(y)
bytes[bytes.length-1]|=isOdd(x)?128:0
return bytes
}
toHex() {
return bytesToHex(this.toBytes())
}
toString() {
return `<Point ${this.is0()?"ZERO":this.toHex()}>`
}
}
const normalize=points=>normalizeZ(Point,points)
const wnaf=new ScalarMultiplier(Point,randomBytes$4)
if (wnaf.bits>=6) Point.BASE.precompute(6)
Object.freeze(Point.prototype)
Object.freeze(Point)
return Point
}
var divNearest=(num,den)=>(num+(num>=0?den:-den)/_2n$1)/den
function _splitEndoScalar(k,basis,n) {
aInRange("scalar",k,_0n$1,n)
const [[a1,b1],[a2,b2]]=basis
const c1=divNearest(b2*k,n)
const c2=divNearest(-b1*k,n)
let k1=k-c1*a1-c2*a2
let k2=-c1*b1-c2*b2
const k1neg=k1<_0n$1
const k2neg=k2<_0n$1
if (k1neg) k1=-k1
if (k2neg) k2=-k2
const MAX_NUM=bitMask(Math.ceil(bitLen(n)/2))+_1n$1
if (k1<_0n$1||k1>=MAX_NUM||k2<_0n$1||k2>=MAX_NUM) throw new Error("splitScalar (endomorphism): failed for k")
return {k1neg,k1,k2neg,k2}
}
var _0n$1=BigInt(0)
var _1n$1=BigInt(1)
var _2n$1=BigInt(2)
var _3n=BigInt(3)
var _4n=BigInt(4)
function weierstrass(params,extraOpts={}) {
const validated=createCurveFields("weierstrass",params,extraOpts)
const Fp=validated.Fp
const Fn=validated.Fn
let CURVE=validated.CURVE
const {h:cofactor,n:CURVE_ORDER}=CURVE
validateObject(extraOpts,{},{allowInfinityPoint:"boolean",clearCofactor:"function",isTorsionFree:"function",fromBytes:"function",toBytes:"function",endo:"object",randomBytes:"function"})
const {endo:endoOpts,allowInfinityPoint,clearCofactor,isTorsionFree,fromBytes,toBytes}=extraOpts
const randomBytes$2=extraOpts.randomBytes===void 0?randomBytes:extraOpts.randomBytes
if (endoOpts) {
if (!Fp.is0(CURVE.a)||typeof endoOpts.beta!=="bigint"||!Array.isArray(endoOpts.basises)) throw new Error("invalid endo: expected \"beta\": bigint and \"basises\": array")
}
const endo=endoOpts?{beta:endoOpts.beta,basises:endoOpts.basises.map(basis=>[...basis])}:void 0
const lengths=getWLengths(Fp,Fn)
function assertCompressionIsSupported() {
if (!Fp.isOdd) throw new Error("compression is not supported: Field does not have .isOdd()")
}
function pointToBytes(_c,point,isCompressed) {
if (point.is0()) {
if (!allowInfinityPoint) throw new Error("bad point: ZERO")
return Uint8Array.of(0)
}
const {x,y}=point.toAffine()
const bx=Fp.toBytes(x)
abool(isCompressed,"isCompressed")
if (isCompressed) {
assertCompressionIsSupported()
return concatBytes(pprefix(!Fp.isOdd(y)),bx)
} else return concatBytes(Uint8Array.of(4),bx,Fp.toBytes(y))
}
function pointFromBytes(bytes) {
abytes(bytes,void 0,"Point")
const {publicKey:comp,publicKeyUncompressed:uncomp}=lengths
const length=bytes.length
const head=bytes[0]
const tail=bytes.subarray(1)
if (allowInfinityPoint&&length===1&&head===0) return {x:Fp.ZERO,y:Fp.ZERO}
if (length===comp&&(head===2||head===3)) {
const x=Fp.fromBytes(tail)
if (!Fp.isValid(x)) throw new Error("bad point: is not on curve, wrong x")
const y2=weierstrassEquation(x)
let y
try {
y=Fp.sqrt(y2)
} catch (sqrtError) {
const err=sqrtError instanceof Error?": "+sqrtError.message:""
throw new Error("bad point: is not on curve, sqrt error"+err)
}
assertCompressionIsSupported()
const evenY=Fp.isOdd(y)
if ((head&1)===1!==evenY) y=Fp.neg(y)
return {x,y}
} else if (length===uncomp&&head===4) {
const L=Fp.BYTES
const x=Fp.fromBytes(tail.subarray(0,L))
const y=Fp.fromBytes(tail.subarray(L,L*2))
if (!isValidXY(x,y)) throw new Error("bad point: is not on curve")
return {x,y}
} else throw new Error(`bad point: got length ${length}, expected compressed=${comp} or uncompressed=${uncomp}`)
}
const encodePoint=toBytes===void 0?pointToBytes:toBytes
const decodePoint=fromBytes===void 0?pointFromBytes:fromBytes
const b3=Fp.mul(CURVE.b,_3n)
const mulA=Fp.is0(CURVE.a)?_=>Fp.ZERO:x=>Fp.mul(CURVE.a,x)
function weierstrassEquation(x) {
const x2=Fp.sqr(x)
const x3=Fp.mul(x2,x)
return Fp.add(Fp.add(x3,Fp.mul(x,CURVE.a)),CURVE.b)
}
function isValidXY(x,y) {
const left=Fp.sqr(y)
const right=weierstrassEquation(x)
return Fp.eql(left,right)
}
if (!isValidXY(CURVE.Gx,CURVE.Gy)) throw new Error("bad curve params: generator point")
const _4a3=Fp.mul(Fp.pow(CURVE.a,_3n),_4n)
const _27b2=Fp.mul(Fp.sqr(CURVE.b),BigInt(27))
if (Fp.is0(Fp.add(_4a3,_27b2))) throw new Error("bad curve params: a or b")
function acoord(title,n,banZero=false) {
if (!Fp.isValid(n)||banZero&&Fp.is0(n)) throw new Error(`bad point coordinate ${title}`)
return typeof n==="object"&&n!==null?Fp.create(n):n
}
function aprjpoint(other) {
if (!(other instanceof Point)) throw new Error("Weierstrass Point expected")
}
function splitEndoScalarN(k) {
if (!endo||!endo.basises) throw new Error("no endo")
return _splitEndoScalar(k,endo.basises,Fn.ORDER)
}
function pushWnafPair(points,scalars,p,k) {
if (!Fn.isValid(k)) throw new RangeError("invalid scalar: out of range")
if (endo) {
const {k1neg,k1,k2neg,k2}=splitEndoScalarN(k)
const psi=new Point(Fp.mul(p.X,endo.beta),p.Y,p.Z)
points.push(k1neg?p.negate():p,k2neg?psi.negate():psi)
scalars.push(k1,k2)
} else {
points.push(p)
scalars.push(k)
}
}
const validityCache=new WeakSet()
class Point {
static BASE=new Point(CURVE.Gx,CURVE.Gy,Fp.ONE)
static ZERO=new Point(Fp.ZERO,Fp.ONE,Fp.ZERO)
static Fp=Fp
static Fn=Fn
X
Y
Z
constructor(X,Y,Z) {
this.X=acoord("x",X)
this.Y=acoord("y",Y,true)
this.Z=acoord("z",Z)
Object.freeze(this)
}
static CURVE() {
return CURVE
}
static fromAffine(p) {
const {x,y}=p||{}
if (!p||!Fp.isValid(x)||!Fp.isValid(y)) throw new Error("invalid affine point")
if (p instanceof Point) throw new Error("projective point not allowed")
if (Fp.is0(x)&&Fp.is0(y)) return Point.ZERO
return new Point(x,y,Fp.ONE)
}
static fromBytes(bytes) {
const P=Point.fromAffine(decodePoint(abytes(bytes,void 0,"point")))
P.assertValidity()
return P
}
static fromHex(hex) {
return Point.fromBytes(hexToBytes(hex))
}
get x() {
return this.toAffine().x
}
get y() {
return this.toAffine().y
}
precompute(windowSize=6,isLazy=true) {
wnaf.setWindowSize(this,windowSize)
if (!isLazy) this.multiply(_3n)
return this
}
assertValidity() {
const p=this
if (p.is0()) {
if (allowInfinityPoint&&Fp.is0(p.X)&&Fp.eql(p.Y,Fp.ONE)&&Fp.is0(p.Z)) return
throw new Error("bad point: ZERO")
}
if (validityCache.has(p)) return
const {x,y}=p.toAffine()
if (!Fp.isValid(x)||!Fp.isValid(y)) throw new Error("bad point: x or y not field elements")
if (!isValidXY(x,y)) throw new Error("bad point: equation left != right")
if (!p.isTorsionFree()) throw new Error("bad point: not in prime-order subgroup")
validityCache.add(p)
}
hasEvenY() {
const {y}=this.toAffine()
if (!Fp.isOdd) throw new Error("Field doesn't support isOdd")
return !Fp.isOdd(y)
}
equals(other) {
aprjpoint(other)
const {X:X1,Y:Y1,Z:Z1}=this
const {X:X2,Y:Y2,Z:Z2}=other
const U1=Fp.eql(Fp.mul(X1,Z2),Fp.mul(X2,Z1))
const U2=Fp.eql(Fp.mul(Y1,Z2),Fp.mul(Y2,Z1))
return U1&&U2
}
negate() {
return new Point(this.X,Fp.neg(this.Y),this.Z)
}
double() {
const {X:X1,Y:Y1,Z:Z1}=this
let X3=Fp.ZERO,Y3=Fp.ZERO,Z3=Fp.ZERO
let t0=Fp.mul(X1,X1)
let t1=Fp.mul(Y1,Y1)
let t2=Fp.mul(Z1,Z1)
let t3=Fp.mul(X1,Y1)
t3=Fp.add(t3,t3)
Z3=Fp.mul(X1,Z1)
Z3=Fp.add(Z3,Z3)
X3=mulA(Z3)
Y3=Fp.mul(b3,t2)
Y3=Fp.add(X3,Y3)
X3=Fp.sub(t1,Y3)
Y3=Fp.add(t1,Y3)
Y3=Fp.mul(X3,Y3)
X3=Fp.mul(t3,X3)
Z3=Fp.mul(b3,Z3)
t2=mulA(t2)
t3=Fp.sub(t0,t2)
t3=mulA(t3)
t3=Fp.add(t3,Z3)
Z3=Fp.add(t0,t0)
t0=Fp.add(Z3,t0)
t0=Fp.add(t0,t2)
t0=Fp.mul(t0,t3)
Y3=Fp.add(Y3,t0)
t2=Fp.mul(Y1,Z1)
t2=Fp.add(t2,t2)
t0=Fp.mul(t2,t3)
X3=Fp.sub(X3,t0)
Z3=Fp.mul(t2,t1)
Z3=Fp.add(Z3,Z3)
Z3=Fp.add(Z3,Z3)
return new Point(X3,Y3,Z3)
}
add(other) {
aprjpoint(other)
const {X:X1,Y:Y1,Z:Z1}=this
const {X:X2,Y:Y2,Z:Z2}=other
let X3=Fp.ZERO,Y3=Fp.ZERO,Z3=Fp.ZERO
let t0=Fp.mul(X1,X2)
let t1=Fp.mul(Y1,Y2)
let t2=Fp.mul(Z1,Z2)
let t3=Fp.add(X1,Y1)
let t4=Fp.add(X2,Y2)
t3=Fp.mul(t3,t4)
t4=Fp.add(t0,t1)
t3=Fp.sub(t3,t4)
t4=Fp.add(X1,Z1)
let t5=Fp.add(X2,Z2)
t4=Fp.mul(t4,t5)
t5=Fp.add(t0,t2)
t4=Fp.sub(t4,t5)
t5=Fp.add(Y1,Z1)
X3=Fp.add(Y2,Z2)
t5=Fp.mul(t5,X3)
X3=Fp.add(t1,t2)
t5=Fp.sub(t5,X3)
Z3=mulA(t4)
X3=Fp.mul(b3,t2)
Z3=Fp.add(X3,Z3)
X3=Fp.sub(t1,Z3)
Z3=Fp.add(t1,Z3)
Y3=Fp.mul(X3,Z3)
t1=Fp.add(t0,t0)
t1=Fp.add(t1,t0)
t2=mulA(t2)
t4=Fp.mul(b3,t4)
t1=Fp.add(t1,t2)
t2=Fp.sub(t0,t2)
t2=mulA(t2)
t4=Fp.add(t4,t2)
t0=Fp.mul(t1,t4)
Y3=Fp.add(Y3,t0)
t0=Fp.mul(t5,t4)
X3=Fp.mul(t3,X3)
X3=Fp.sub(X3,t0)
t0=Fp.mul(t3,t1)
Z3=Fp.mul(t5,Z3)
Z3=Fp.add(Z3,t0)
return new Point(X3,Y3,Z3)
}
subtract(other) {
aprjpoint(other)
return this.add(other.negate())
}
is0() {
return this.equals(Point.ZERO)
}
multiply(scalar) {
if (!Fn.isValidNot0(scalar)) throw new RangeError("invalid scalar: out of range")
const {p,f}=wnaf.mulSecret(this,scalar,cofactor,normalize)
return normalize([p,f])[0]
}
multiplyUnsafe(scalar) {
const p=this
const sc=scalar
if (!Fn.isValid(sc)) throw new RangeError("invalid scalar: out of range")
if (sc===_0n$1||p.is0()) return Point.ZERO
if (sc===_1n$1) return p
if (wnaf.hasWindowSize(this)) return wnaf.mulUnsafe(p,sc,normalize)
const points=[]
const scalars=[]
pushWnafPair(points,scalars,p,sc)
return mulAddUnsafe(Point,points,scalars)
}
mulAddUnsafe(a,other,b) {
aprjpoint(other)
const points=[]
const scalars=[]
pushWnafPair(points,scalars,this,a)
pushWnafPair(points,scalars,other,b)
return mulAddUnsafe(Point,points,scalars)
}
toAffine(invertedZ) {
const p=this
let iz=invertedZ
if (iz!=null&&!Fp.isValid(iz)) throw new RangeError("\"invertedZ\" expected valid field element")
const {X,Y,Z}=p
if (Fp.eql(Z,Fp.ONE)) return {x:X,y:Y}
const is0=p.is0()
if (iz==null) iz=is0?Fp.ONE:Fp.inv(Z)
const x=Fp.mul(X,iz)
const y=Fp.mul(Y,iz)
const zz=Fp.mul(Z,iz)
if (is0) return {x:Fp.ZERO,y:Fp.ZERO}
if (!Fp.eql(zz,Fp.ONE)) throw new Error("invZ was invalid")
return {x,y}
}
isTorsionFree() {
if (cofactor===_1n$1) return true
if (isTorsionFree) return isTorsionFree(Point,this)
return wnaf.mulUnsafe(this,CURVE_ORDER).is0()
}
clearCofactor() {
if (cofactor===_1n$1) return this
if (clearCofactor) return clearCofactor(Point,this)
return this.multiplyUnsafe(cofactor)
}
isSmallOrder() {
if (cofactor===_1n$1) return this.is0()
return this.clearCofactor().is0()
}
toBytes(isCompressed=true) {
abool(isCompressed,"isCompressed")
this.assertValidity()
return encodePoint(Point,this,isCompressed)
}
toHex(isCompressed=true) {
return bytesToHex(this.toBytes(isCompressed))
}
toString() {
return `<Point ${this.is0()?"ZERO":this.toHex()}>`
}
}
const normalize=points=>normalizeZ(Point,points)
const wnaf=new ScalarMultiplier(Point,randomBytes$2)
if (wnaf.bits>=6) Point.BASE.precompute(6)
Object.freeze(Point.prototype)
Object.freeze(Point)
return Point
}
function pprefix(hasEvenY) {
return Uint8Array.of(hasEvenY?2:3)
}
function getWLengths(Fp,Fn) {
return {secretKey:Fn.BYTES,publicKey:1+Fp.BYTES,publicKeyUncompressed:1+2*Fp.BYTES,publicKeyHasPrefix:true,signature:2*Fn.BYTES}
}
var _0n=BigInt(0)
var _1n=BigInt(1)
var _2n=BigInt(2)
var _7n=BigInt(7)
var _256n=BigInt(256)
var _0x71n=BigInt(113)
var SHA3_PI=[]
var SHA3_ROTL=[]
var _SHA3_IOTA=[]
for (let round=0,R=_1n,x=1,y=0; round<24; round++) {
[x,y]=[y,(2*x+3*y)%5]
SHA3_PI.push(2*(5*y+x))
SHA3_ROTL.push((round+1)*(round+2)/2%64)
let t=_0n
for (let j=0; j<7; j++) {
R=(R<<_1n^(R>>_7n)*_0x71n)%_256n
if (R&_2n) t^=_1n<<(_1n<<BigInt(j))-_1n
}
_SHA3_IOTA.push(t)
}
var IOTAS=split(_SHA3_IOTA,true)
var SHA3_IOTA_H=IOTAS[0]
var SHA3_IOTA_L=IOTAS[1]
var rotlSH=(h,l,s)=>h<<s|l>>>32-s
var rotlSL=(h,l,s)=>l<<s|h>>>32-s
var rotlBH=(h,l,s)=>l<<s-32|h>>>64-s
var rotlBL=(h,l,s)=>h<<s-32|l>>>64-s
var rotlH=(h,l,s)=>s>32?rotlBH(h,l,s):rotlSH(h,l,s)
var rotlL=(h,l,s)=>s>32?rotlBL(h,l,s):rotlSL(h,l,s)
var B$2=new Uint32Array(10)
function keccakP(s,rounds=24) {
if (!(s instanceof Uint32Array)) throw new TypeError("\"s\" expected Uint32Array(50), got type="+typeof s)
if (s.length!==50) throw new RangeError("\"s\" expected Uint32Array(50), got length="+s.length)
anumber$1(rounds,"rounds")
if (rounds<1||rounds>24) throw new Error("\"rounds\" expected integer 1..24")
for (let round=24-rounds; round<24; round++) {
for (let x=0; x<10; x++) B$2[x]=s[x]^s[x+10]^s[x+20]^s[x+30]^s[x+40]
for (let x=0; x<10; x+=2) {
const idx1=(x+8)%10
const idx0=(x+2)%10
const B0=B$2[idx0]
const B1=B$2[idx0+1]
const Th=rotlH(B0,B1,1)^B$2[idx1]
const Tl=rotlL(B0,B1,1)^B$2[idx1+1]
for (let y=0; y<50; y+=10) {
s[x+y]^=Th
s[x+y+1]^=Tl
}
}
let curH=s[2]
let curL=s[3]
for (let t=0; t<24; t++) {
const shift=SHA3_ROTL[t]
const Th=rotlH(curH,curL,shift)
const Tl=rotlL(curH,curL,shift)
const PI=SHA3_PI[t]
curH=s[PI]
curL=s[PI+1]
s[PI]=Th
s[PI+1]=Tl
}
for (let y=0; y<50; y+=10) {
const b0=s[y],b1=s[y+1],b2=s[y+2],b3=s[y+3]
s[y]^=~s[y+2]&s[y+4]
s[y+1]^=~s[y+3]&s[y+5]
s[y+2]^=~s[y+4]&s[y+6]
s[y+3]^=~s[y+5]&s[y+7]
s[y+4]^=~s[y+6]&s[y+8]
s[y+5]^=~s[y+7]&s[y+9]
s[y+6]^=~s[y+8]&b0
s[y+7]^=~s[y+9]&b1
s[y+8]^=~b0&b2
s[y+9]^=~b1&b3
}
s[0]^=SHA3_IOTA_H[round]
s[1]^=SHA3_IOTA_L[round]
}
clean(B$2)
}
var Keccak=class Keccak {
state
pos=0
posOut=0
finished=false
state32
destroyed=false
blockLen
suffix
outputLen
canXOF
enableXOF=false
rounds
constructor(blockLen,suffix,outputLen,enableXOF=false,rounds=24) {
anumber$1(blockLen,"blockLen")
anumber$1(suffix,"suffix")
anumber$1(rounds,"rounds")
abool$1(enableXOF,"enableXOF")
this.blockLen=blockLen
this.suffix=suffix
this.outputLen=outputLen
this.enableXOF=enableXOF
this.canXOF=enableXOF
this.rounds=rounds
anumber$1(outputLen,"outputLen")
if (!(0<blockLen&&blockLen<200)) throw new Error("\"blockLen\" must be 1..199")
this.state=new Uint8Array(200)
this.state32=u32(this.state)
}
clone() {
return this._cloneInto()
}
keccak() {
swap32IfBE(this.state32)
keccakP(this.state32,this.rounds)
swap32IfBE(this.state32)
this.posOut=0
this.pos=0
}
update(data) {
aexists(this)
abytes$1(data)
const {blockLen,state,state32}=this
const len=data.length
const canUseU32=blockLen%4===0&&data.byteOffset%4===0
const blockLen32=blockLen/4
const data32=canUseU32&&len>=blockLen?u32(data):void 0
for (let pos=0; pos<len;) {
if (data32!==void 0&&this.pos===0&&pos%4===0&&len-pos>=blockLen) {
for (let i=0,o=pos/4; i<blockLen32; i++) state32[i]^=data32[o+i]
pos+=blockLen
this.pos=blockLen
this.keccak()
continue
}
const take=Math.min(blockLen-this.pos,len-pos)
for (let i=0; i<take; i++) state[this.pos++]^=data[pos++]
if (this.pos===blockLen) this.keccak()
}
return this
}
finish() {
if (this.finished) return
this.finished=true
const {state,suffix,pos,blockLen}=this
state[pos]^=suffix
if ((suffix&128)!==0&&pos===blockLen-1) this.keccak()
state[blockLen-1]^=128
this.keccak()
}
writeInto(out) {
aexists(this,false)
abytes$1(out)
this.finish()
const bufferOut=this.state
const {blockLen}=this
for (let pos=0,len=out.length; pos<len;) {
if (this.posOut>=blockLen) this.keccak()
const take=Math.min(blockLen-this.posOut,len-pos)
out.set(bufferOut.subarray(this.posOut,this.posOut+take),pos)
this.posOut+=take
pos+=take
}
return out
}
xofInto(out) {
if (!this.enableXOF) throw new Error("XOF is not enabled")
return this.writeInto(out)
}
xof(bytes) {
anumber$1(bytes)
return this.xofInto(new Uint8Array(bytes))
}
digestInto(out) {
aoutput(out,this)
if (this.finished) throw new Error("digest() was already called")
this.writeInto(out.length===this.outputLen?out:out.subarray(0,this.outputLen))
this.destroy()
}
digest() {
const out=new Uint8Array(this.outputLen)
this.digestInto(out)
return out
}
destroy() {
this.destroyed=true
clean(this.state)
}
_cloneInto(to) {
const {blockLen,suffix,outputLen,rounds,enableXOF}=this
to||=new Keccak(blockLen,suffix,outputLen,enableXOF,rounds)
to.blockLen=blockLen
to.state32.set(this.state32)
to.pos=this.pos
to.posOut=this.posOut
to.finished=this.finished
to.rounds=rounds
to.suffix=suffix
to.outputLen=outputLen
to.enableXOF=enableXOF
to.canXOF=this.canXOF
to.destroyed=this.destroyed
return to
}
}
var genShake=(suffix,blockLen,outputLen,info={})=>createHasher((opts={})=>{
opts=checkOpts({},opts)
return new Keccak(blockLen,suffix,opts.dkLen===void 0?outputLen:opts.dkLen,true)
},info)
var shake128=genShake(31,168,16,oidNist(11))
var shake256=genShake(31,136,32,oidNist(12))
function checkU32(n,title="n") {
if (typeof n!=="number") throw new TypeError(`wrong u32 integer "${title}": expected number, got type=${typeof n}`)
if (!Number.isSafeInteger(n)||n<0||n>4294967295) throw new RangeError(`wrong u32 integer "${title}": expected 0..4294967295, got ${n}`)
return n
}
function isPowerOfTwo(x) {
checkU32(x,"x")
return (x&x-1)===0&&x!==0
}
function reverseBits(n,bits) {
checkU32(n)
if (typeof bits!=="number") throw new TypeError("\"bits\" expected number, got type="+typeof bits)
if (!Number.isSafeInteger(bits)||bits<0||bits>32) throw new Error(`expected integer 0 <= bits <= 32, got ${bits}`)
let reversed=0
for (let i=0; i<bits; i++,n>>>=1) reversed=reversed<<1|n&1
return reversed>>>0
}
function log2(n) {
checkU32(n)
return 31-Math.clz32(n)
}
function bitReversalInplace(values) {
if (!values||typeof values!=="object"||typeof values.length!=="number") throw new TypeError("\"values\" expected array-like, got type="+typeof values)
const n=values.length
if (!isPowerOfTwo(n)) throw new Error("expected positive power-of-two length, got "+n)
const bits=log2(n)
for (let i=0; i<n; i++) {
const j=reverseBits(i,bits)
if (i<j) {
const tmp=values[i]
values[i]=values[j]
values[j]=tmp
}
}
return values
}
var FFTCore=(F,coreOpts)=>{
validateObject(coreOpts,{N:"number",roots:"object",dit:"boolean"},{invertButterflies:"boolean",skipStages:"number",brp:"boolean"},"coreOpts")
const {N,roots,dit,invertButterflies=false,skipStages=0,brp=true}=coreOpts
checkU32(N,"coreOpts.N")
const bits=log2(N)
if (!isPowerOfTwo(N)) throw new Error("FFT: Polynomial size should be power of two")
checkU32(skipStages,"coreOpts.skipStages")
const maxSkipStages=bits===0?0:bits-1
if (skipStages>maxSkipStages) throw new Error(`FFT: wrong skipStages: expected 0 <= skipStages <= ${maxSkipStages}`)
if (roots.length!==N) throw new Error(`FFT: wrong roots length: expected ${N}, got ${roots.length}`)
const isDit=dit!==invertButterflies
return values=>{
if (values.length!==N) throw new Error("FFT: wrong Polynomial length")
if (dit&&brp) bitReversalInplace(values)
for (let i=0,g=1; i<bits-skipStages; i++) {
const s=dit?i+1+skipStages:bits-i
const m=1<<s
const m2=m>>1
const stride=N>>s
for (let k=0; k<N; k+=m) for (let j=0,grp=g++; j<m2; j++) {
const rootPos=invertButterflies?dit?N-grp:grp:j*stride
const i0=k+j
const i1=k+j+m2
const omega=roots[rootPos]
const b=values[i1]
const a=values[i0]
if (isDit) {
const t=F.mul(b,omega)
values[i0]=F.add(a,t)
values[i1]=F.sub(a,t)
} else if (invertButterflies) {
values[i0]=F.add(b,a)
values[i1]=F.mul(F.sub(b,a),omega)
} else {
values[i0]=F.add(a,b)
values[i1]=F.mul(F.sub(a,b),omega)
}
}
}
if (!dit&&brp) bitReversalInplace(values)
return values
}
}
var abytesDoc=abytes$1
function aarray(item,title,inner=()=>{}) {
if (!Array.isArray(item)) throw new TypeError(`"${title}" expected array, got type=${typeof item}`)
for (let i=0; i<item.length; i++) inner(item[i],`${title}[${i}]`)
return item
}
function aobject(value,title="object") {
if (value===null||typeof value!=="object"||Array.isArray(value)) throw new TypeError(title==="object"?"expected valid options object":`"${title}" expected object, got type=${typeof value}`)
return value
}
function equalBytes(a,b) {
a=abytes$1(a)
b=abytes$1(b)
if (a.length!==b.length) return false
let diff=0
for (let i=0; i<a.length; i++) diff|=a[i]^b[i]
return diff===0
}
function validateOpts(opts) {
if (isBytes$1(opts)) throw new TypeError("\"opts\" expected object, got Uint8Array")
aobject(opts,"opts")
const proto=Object.getPrototypeOf(opts)
if (proto!==null&&proto!==Object.prototype) throw new TypeError("\"opts\" expected a plain object")
}
var VER_OPT_KEYS=Object.freeze(["context"])
function checkOptKeys(opts,allowed) {
validateOpts(opts)
const normalized=Object.assign(Object.create(null),opts)
for (const [k,v] of Object.entries(normalized)) {
if (v===void 0) continue
if (!allowed.includes(k)) throw new TypeError("unexpected option \""+String(k)+"\"; expected one of: "+allowed.join(", "))
}
return Object.freeze(normalized)
}
function validateVerOpts(opts,allowed=VER_OPT_KEYS) {
const normalized=checkOptKeys(opts,allowed)
if (normalized.context!==void 0) abytes$1(normalized.context,void 0,"opts.context")
return normalized
}
function splitCoder(label,...lengths) {
const getLength=c=>typeof c==="number"?c:c.bytesLen
const bytesLen=lengths.reduce((sum,a)=>sum+getLength(a),0)
return {bytesLen,encode:bufs=>{
const res=new Uint8Array(bytesLen)
for (let i=0,pos=0; i<lengths.length; i++) {
const c=lengths[i]
const l=getLength(c)
const b=typeof c==="number"?bufs[i]:c.encode(bufs[i])
abytes$1(b,l,label)
res.set(b,pos)
if (typeof c!=="number") b.fill(0)
pos+=l
}
return res
},decode:buf=>{
abytes$1(buf,bytesLen,label)
const res=[]
for (const c of lengths) {
const l=getLength(c)
const b=buf.subarray(0,l)
res.push(typeof c==="number"?b:c.decode(b))
buf=buf.subarray(l)
}
return res
}}
}
function vecCoder(c,vecLen) {
const coder=c
const bytesLen=vecLen*coder.bytesLen
return {bytesLen,encode:u=>{
const uArr=aarray(u,"u")
if (uArr.length!==vecLen) throw new RangeError(`vecCoder.encode: wrong length=${uArr.length}. Expected: ${vecLen}`)
const res=new Uint8Array(bytesLen)
for (let i=0,pos=0; i<uArr.length; i++) {
const b=coder.encode(uArr[i])
res.set(b,pos)
b.fill(0)
pos+=b.length
}
return res
},decode:a=>{
abytes$1(a,bytesLen)
const r=[]
for (let i=0; i<a.length; i+=coder.bytesLen) r.push(coder.decode(a.subarray(i,i+coder.bytesLen)))
return r
}}
}
function cleanBytes(...list) {
for (const t of list) if (Array.isArray(t)) for (const b of t) b.fill(0)
else t.fill(0)
}
function getMask(bits) {
anumber$1(bits,"bits")
if (bits>32) throw new RangeError("\"bits\" expected <= 32, got "+bits)
return bits===32?4294967295:~(-1<<bits)>>>0
}
var EMPTY$2=Uint8Array.of()
function getMessage(msg,ctx=EMPTY$2) {
abytes$1(msg,void 0,"msg")
abytes$1(ctx,void 0,"ctx")
if (ctx.length>255) throw new RangeError("context should be 255 bytes or less")
return concatBytes$1(new Uint8Array([0,ctx.length]),ctx,msg)
}
var genCrystals=opts=>{
const {newPoly,N,Q,F,ROOT_OF_UNITY,brvBits,isKyber}=opts
const mod=(a,modulo=Q)=>{
const result=a%modulo|0
return (result>=0?result|0:modulo+result|0)|0
}
const smod=(a,modulo=Q)=>{
const r=mod(a,modulo)|0
return (r>modulo>>1?r-modulo|0:r)|0
}
function getZettas() {
const out=newPoly(N)
for (let i=0; i<N; i++) {
const b=reverseBits(i,brvBits)
const p=BigInt(ROOT_OF_UNITY)**BigInt(b)%BigInt(Q)
out[i]=Number(p)|0
}
return out
}
const nttZetas=getZettas()
const inv=_a=>{
throw new Error("not implemented")
}
const field=isKyber?{add:(a,b)=>{
const r=a+b|0
return r>=Q?r-Q|0:r
},sub:(a,b)=>{
const r=a-b|0
return r<0?r+Q|0:r
},mul:(a,b)=>mod((a|0)*(b|0))|0,inv}:{add:(a,b)=>mod((a|0)+(b|0))|0,sub:(a,b)=>mod((a|0)-(b|0))|0,mul:(a,b)=>mod((a|0)*(b|0))|0,inv}
const nttOpts={N,roots:nttZetas,invertButterflies:true,skipStages:isKyber?1:0,brp:false}
const dif=FFTCore(field,{dit:false,...nttOpts})
const dit=FFTCore(field,{dit:true,...nttOpts})
const NTT={encode:r=>{
return dif(r)
},decode:r=>{
dit(r)
for (let i=0; i<r.length; i++) r[i]=mod(F*r[i])
return r
}}
const bitsCoder=(d,c)=>{
for (let i=0,bufLen=0; i<N; i++) {
bufLen+=d
if (bufLen>32) getMask(bufLen)
bufLen%=8
}
const mask=getMask(d)
const bytesLen=d*(N/8)
return {bytesLen,encode:poly_=>{
const poly=poly_
const r=new Uint8Array(bytesLen)
for (let i=0,buf=0,bufLen=0,pos=0; i<poly.length; i++) {
buf|=(c.encode(poly[i])&mask)<<bufLen
bufLen+=d
for (; bufLen>=8; bufLen-=8,buf>>=8) r[pos++]=buf&255
}
return r
},decode:bytes=>{
const r=newPoly(N)
for (let i=0,buf=0,bufLen=0,pos=0; i<bytes.length; i++) {
buf|=bytes[i]<<bufLen
bufLen+=8
for (; bufLen>=d; bufLen-=d,buf>>=d) r[pos++]=c.decode(buf&mask)
}
return r
}}
}
return {mod,smod,nttZetas,NTT:{encode:r=>NTT.encode(r),decode:r=>NTT.decode(r)},bitsCoder}
}
var createXofShake=shake=>(seed,blockLen)=>{
if (!blockLen) blockLen=shake.blockLen
const _seed=new Uint8Array(seed.length+2)
_seed.set(seed)
const seedLen=seed.length
const buf=new Uint8Array(blockLen)
let h=shake.create({})
let calls=0
let xofs=0
return {stats:()=>({calls,xofs}),get:(x,y)=>{
_seed[seedLen+0]=x
_seed[seedLen+1]=y
h.destroy()
h=shake.create({}).update(_seed)
calls++
return ()=>{
xofs++
return h.xofInto(buf)
}
},clean:()=>{
h.destroy()
cleanBytes(buf,_seed)
}}
}
var XOF128=createXofShake(shake128)
var XOF256=createXofShake(shake256)
var INTERNAL_VER_OPT_KEYS=Object.freeze(["externalMu"])
function validateInternalOpts(opts,allowed) {
const normalized=checkOptKeys(opts,allowed)
if (normalized.externalMu!==void 0) abool(normalized.externalMu,"opts.externalMu")
return normalized
}
var N$1=256
var Q$1=8380417
var ROOT_OF_UNITY=1753
var F$3=8347681
var D$2=13
var GAMMA2_1=Math.floor(95232)|0
var GAMMA2_2=Math.floor(261888)|0
var PARAMS=(()=>Object.freeze({2:Object.freeze({K:4,L:4,D:D$2,GAMMA1:2**17,GAMMA2:GAMMA2_1,TAU:39,ETA:2,OMEGA:80}),3:Object.freeze({K:6,L:5,D:D$2,GAMMA1:2**19,GAMMA2:GAMMA2_2,TAU:49,ETA:4,OMEGA:55}),5:Object.freeze({K:8,L:7,D:D$2,GAMMA1:2**19,GAMMA2:GAMMA2_2,TAU:60,ETA:2,OMEGA:75})}))()
var newPoly=n=>new Int32Array(n)
var crystals=genCrystals({N:N$1,Q:Q$1,F:F$3,ROOT_OF_UNITY,newPoly,isKyber:false,brvBits:8})
var id=n=>n
var polyCoder=(d,compress=id,verify=id)=>crystals.bitsCoder(d,{encode:i=>compress(verify(i)),decode:i=>verify(compress(i))})
var polyAdd=(a_,b_)=>{
const a=a_
const b=b_
for (let i=0; i<a.length; i++) a[i]=crystals.mod(a[i]+b[i])
return a
}
var polySub=(a_,b_)=>{
const a=a_
const b=b_
for (let i=0; i<a.length; i++) a[i]=crystals.mod(a[i]-b[i])
return a
}
var polyShiftl=p_=>{
const p=p_
for (let i=0; i<N$1; i++) p[i]<<=D$2
return p
}
var polyChknorm=(p_,B)=>{
const p=p_
for (let i=0; i<N$1; i++) if (Math.abs(crystals.smod(p[i]))>=B) return true
return false
}
var MultiplyNTTs=(a_,b_)=>{
const a=a_
const b=b_
const c=newPoly(N$1)
for (let i=0; i<a.length; i++) c[i]=crystals.mod(a[i]*b[i])
return c
}
function RejNTTPoly(xof_) {
const xof=xof_
const r=newPoly(N$1)
for (let j=0; j<N$1;) {
const b=xof()
if (b.length%3) throw new Error("RejNTTPoly: unaligned block")
for (let i=0; j<N$1&&i<=b.length-3; i+=3) {
const t=(b[i+0]|b[i+1]<<8|b[i+2]<<16)&8388607
if (t<Q$1) r[j++]=t
}
}
return r
}
function getDilithium(opts_) {
const opts=opts_
const {K,L,GAMMA1,GAMMA2,TAU,ETA,OMEGA}=opts
const {CRH_BYTES,TR_BYTES,C_TILDE_BYTES,XOF128,XOF256,securityLevel}=opts
if (![2,4].includes(ETA)) throw new Error("Wrong ETA")
if (![1<<17,1<<19].includes(GAMMA1)) throw new Error("Wrong GAMMA1")
if (![GAMMA2_1,GAMMA2_2].includes(GAMMA2)) throw new Error("Wrong GAMMA2")
const BETA=TAU*ETA
const decompose=r=>{
const rPlus=crystals.mod(r)
const r0=crystals.smod(rPlus,2*GAMMA2)|0
if (rPlus-r0===8380416) return {r1:0,r0:r0-1|0}
return {r1:Math.floor((rPlus-r0)/(2*GAMMA2))|0,r0}
}
const HINT_M=Math.floor(8380416/(2*GAMMA2))
const UseHint=(h,r)=>{
const {r1,r0}=decompose(r)
if (h===1) return r0>0?crystals.mod(r1+1,HINT_M)|0:crystals.mod(r1-1,HINT_M)|0
return r1|0
}
const hintCoder={bytesLen:OMEGA+K,encode:h_=>{
const h=h_
if (h===false) throw new Error("hint.encode: hint is false")
const res=new Uint8Array(OMEGA+K)
for (let i=0,k=0; i<K; i++) {
for (let j=0; j<N$1; j++) if (h[i][j]!==0) res[k++]=j
res[OMEGA+i]=k
}
return res
},decode:buf=>{
const h=[]
let k=0
for (let i=0; i<K; i++) {
const hi=newPoly(N$1)
if (buf[OMEGA+i]<k||buf[OMEGA+i]>OMEGA) return false
for (let j=k; j<buf[OMEGA+i]; j++) {
if (j>k&&buf[j]<=buf[j-1]) return false
hi[buf[j]]=1
}
k=buf[OMEGA+i]
h.push(hi)
}
for (let j=k; j<OMEGA; j++) if (buf[j]!==0) return false
return h
}}
const T1Coder=polyCoder(10)
const ZCoder=polyCoder(GAMMA1===1<<17?18:20,i=>crystals.smod(GAMMA1-i))
const W1Vec=vecCoder(polyCoder(GAMMA2===GAMMA2_1?6:4),K)
const publicCoder=splitCoder("publicKey",32,vecCoder(T1Coder,K))
const sigCoder=splitCoder("signature",C_TILDE_BYTES,vecCoder(ZCoder,L),hintCoder)
const SampleInBall=seed=>{
const pre=newPoly(N$1)
const s=shake256.create({}).update(seed)
const buf=new Uint8Array(shake256.blockLen)
s.xofInto(buf)
const masks=buf.slice(0,8)
for (let i=N$1-TAU,pos=8,maskPos=0,maskBit=0; i<N$1; i++) {
let b=i+1
for (; b>i;) {
b=buf[pos++]
if (pos<shake256.blockLen) continue
s.xofInto(buf)
pos=0
}
pre[i]=pre[b]
pre[b]=1-((masks[maskPos]>>maskBit++&1)<<1)
if (maskBit>=8) {
maskPos++
maskBit=0
}
}
return pre
}
const polyUseHint=(u_,h_)=>{
const u=u_
const h=h_
for (let i=0; i<N$1; i++) u[i]=UseHint(h[i],u[i])
return u
}
const internal=Object.freeze({info:Object.freeze({type:"internal-ml-dsa"}),verify:(sig,msg,publicKey,opts={})=>{
opts=validateInternalOpts(opts,INTERNAL_VER_OPT_KEYS)
const {externalMu=false}=opts
if (externalMu) abytesDoc(msg,CRH_BYTES,"mu")
const [rho,t1]=publicCoder.decode(publicKey)
const tr=shake256(publicKey,{dkLen:TR_BYTES})
if (sig.length!==sigCoder.bytesLen) return false
const [cTilde,z,h]=sigCoder.decode(sig)
if (h===false) return false
for (let i=0; i<L; i++) if (polyChknorm(z[i],GAMMA1-BETA)) return false
const mu=externalMu?msg:shake256.create({dkLen:CRH_BYTES}).update(tr).update(msg).digest()
const c=crystals.NTT.encode(SampleInBall(cTilde))
const zNtt=z.map(i=>i.slice())
for (let i=0; i<L; i++) crystals.NTT.encode(zNtt[i])
const wTick1=[]
const xof=XOF128(rho)
for (let i=0; i<K; i++) {
const ct12d=MultiplyNTTs(crystals.NTT.encode(polyShiftl(t1[i])),c)
const Az=newPoly(N$1)
for (let j=0; j<L; j++) polyAdd(Az,MultiplyNTTs(RejNTTPoly(xof.get(j,i)),zNtt[j]))
const wApprox=crystals.NTT.decode(polySub(Az,ct12d))
wTick1.push(polyUseHint(wApprox,h[i]))
}
xof.clean()
const c2=shake256.create({dkLen:C_TILDE_BYTES}).update(mu).update(W1Vec.encode(wTick1)).digest()
for (const t of h) if (!(t.reduce((acc,i)=>acc+i,0)<=OMEGA)) return false
for (const t of z) if (polyChknorm(t,GAMMA1-BETA)) return false
return equalBytes(cTilde,c2)
}})
return Object.freeze({info:Object.freeze({type:"ml-dsa"}),internal,securityLevel,verify:(sig,msg,publicKey,opts={})=>{
opts=validateVerOpts(opts)
abytesDoc(sig,void 0,"signature")
return internal.verify(sig,getMessage(msg,opts.context),publicKey,{externalMu:false})
}})
}
var ml_dsa65=(()=>getDilithium({...PARAMS[3],CRH_BYTES:64,TR_BYTES:64,C_TILDE_BYTES:48,XOF128,XOF256,securityLevel:192}))();
// src/verify/ml_dsa.ts
var SIGNATURE$1=/^[0-9a-f]{6618}$/
var PUBLIC$1=/^[0-9a-f]{3904}$/
function isMlDsaSignatureHex(signature) {
return SIGNATURE$1.test(signature)
}
function verifyMlDsa(publicHex,message,signature) {
if (!PUBLIC$1.test(publicHex)||!SIGNATURE$1.test(signature)) return false
try {
return ml_dsa65.verify(fromHex(signature),message,fromHex(publicHex))
} catch {
return false
}
}
// src/verify/text.ts
function isPrintable(text) {
return !/[^ -~]/.test(text)||/^(?:[^\p{C}\p{Z}]| )*$/u.test(text)
}
function codePoints(text) {
let count=0
for (let at=0; at<text.length; at++) {
const unit=text.charCodeAt(at)
const isLow=unit>=56320&&unit<57344
const before=isLow&&at>0?text.charCodeAt(at-1):0
if (!(isLow&&before>=55296&&before<56320)) count++
}
return count
}
function cutText(text,most) {
if (text.length<=most) return text
let out=""
let count=0
for (const character of text) {
if (count++>=most) break
out+=character
}
return out
}
var PYTHON_SPACE="\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
var AROUND$1=new RegExp(`^[${PYTHON_SPACE}]+|[${PYTHON_SPACE}]+$`,"g")
var LINE_END$1=/[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/
function strip(text) {
return text.replace(AROUND$1,"")
}
function firstLine(text) {
return text.split(LINE_END$1,1)[0]??""
}
var E_MAIL=/[\p{L}\p{N}_.%+-]{1,64}@[\p{L}\p{N}_-]{1,63}(?:\.[\p{L}\p{N}_-]{1,63}){1,8}/gu
var HOME=new RegExp(`(?:/home|/Users|[A-Za-z]:\\\\Users)[/\\\\][^/\\\\${PYTHON_SPACE}]+`,"gu")
function cleanTitle(line,most) {
const cleaned=line.replace(E_MAIL,"[e-mail]").replace(HOME,"~")
return cutText(cleaned.isWellFormed()?cleaned:replaceSurrogates(cleaned),most)
}
function replaceSurrogates(text) {
let out=""
for (const character of text) out+=character.isWellFormed()?character:"?"
return out
}
var FILE_NAME_MAX=240
function isFileName(name) {
return typeof name==="string"&&isPrintable(name)&&name!==""&&!name.startsWith(".")&&!name.includes("/")&&!name.includes("\\")&&new TextEncoder().encode(name).length<=FILE_NAME_MAX
}
var ESCAPES={"\\":"\\\\","\n":"\\n","\r":"\\r","	":"\\t"}
function escapeCharacter(character) {
const code=character.codePointAt(0)
const digits=code.toString(16)
return ESCAPES[character]??(code<256?`\\x${digits.padStart(2,"0")}`:code<65536?`\\u${digits.padStart(4,"0")}`:`\\U${digits.padStart(8,"0")}`)
}
function writePython(value,escaped) {
const write=item=>writePython(item,escaped)
if (typeof value==="string") {
const quote=value.includes("'")&&!value.includes("\"")?"\"":"'"
const text=value.replace(escaped,escapeCharacter)
return quote+(quote==="'"?text.replaceAll("'","\\'"):text)+quote
}
if (value instanceof JsonNumber) return canonicalNumber(value)
if (Array.isArray(value)) return `[${value.map(write).join(", ")}]`
if (isObject(value)) return `{${[...value].map(([name,item])=>`${write(name)}: ${write(item)}`).join(", ")}}`
return value===true?"True":value===false?"False":"None"
}
function pythonText(value) {
return typeof value==="string"?value:writePython(value,/\\|(?! )[\p{C}\p{Z}]/gu)
}
function show$1(value,most=80) {
return writePython(value,/[^ -[\]-~]/gu).slice(0,most)
}
// src/verify/statement.ts
var SIGNATURES_MAX=64
var STATEMENT_MAX$1=262144
var CHECKPOINT_MAX=12582912
var PASSKEY_PURPOSES=["approval","enrolment","withdrawal"]
var PURPOSE$1=/^[a-z][a-z0-9-]{0,31}$/
var FINGERPRINT=/^[0-9a-f]{16}$/
var ED25519$1=/^[0-9a-f]{128}$/
var ML_DSA_65$1=/^[0-9a-f]{6618}$/
function signatureFields({by,ed25519,ml_dsa_65,passkey}) {
if (passkey===null) return new Map(Object.entries({by,ed25519,ml_dsa_65}))
return new Map([["by",by],["passkey",new Map(Object.entries(passkey))]])
}
function statementFields$1({purpose,content,signatures}) {
return new Map([["v",new JsonNumber("1")],["purpose",purpose],["content",content],["signatures",signatures.map(signatureFields)]])
}
function checkObject(value,where,required,optional=[]) {
if (!isObject(value)) throw new BadInput(`${where} must be an object`)
for (const name of required) if (!value.has(name)) throw new BadInput(`${where} lacks '${name}'`)
for (const name of value.keys()) if (!required.includes(name)&&!optional.includes(name)) throw new BadInput(`${where} has an unknown key ${show$1(name)}`)
return value
}
function checkVersion(value,where) {
if (!isInteger(value)||value.text!=="1") throw new BadInput(`${where} is of a version that this page does not read`)
}
function textField(value,where,pattern) {
if (typeof value!=="string"||!pattern.test(value)) throw new BadInput(`${where} has a bad value`)
return value
}
var TIME$1=/^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(\.\d{6})?\+00:00$/
function timeField(value,where) {
const text=textField(value,where,TIME$1)
if (!isCalendarTime(text)) throw new BadInput(`${where} is not a point in time`)
return text
}
var DAYS$2=[31,28,31,30,31,30,31,31,30,31,30,31]
function isCalendarTime(text) {
const [year,month,day]=[Number(text.slice(0,4)),Number(text.slice(5,7)),Number(text.slice(8,10))]
const isLeap=year%4===0&&year%100!==0||year%400===0
const days=month===2&&isLeap?29:DAYS$2[month-1]??0
return year>=1&&day>=1&&day<=days&&text.slice(11,13)<="23"&&text.slice(14,16)<="59"&&text.slice(17,19)<="59"
}
function readStatement(data,where="statement") {
const object=checkObject(data,where,["v","purpose","content","signatures"])
checkVersion(object.get("v"),where)
const purpose=textField(object.get("purpose"),`${where}.purpose`,PURPOSE$1)
const signatures=object.get("signatures")
if (!Array.isArray(signatures)||signatures.length>SIGNATURES_MAX) throw new BadInput(`${where}.signatures must be a list of at most ${SIGNATURES_MAX}`)
const content=object.get("content")
statementBytes(purpose,content)
return {purpose,content,signatures:signatures.map((item,at)=>readSignature(item,`${where}.signatures[${at}]`,purpose))}
}
function readSignature(item,where,purpose) {
if (PASSKEY_PURPOSES.includes(purpose)&&isObject(item)&&item.has("passkey")) {
const object=checkObject(item,where,["by","passkey"])
return {by:textField(object.get("by"),`${where}.by`,FINGERPRINT),ed25519:"",ml_dsa_65:"",passkey:readPasskeySignature(object.get("passkey"),`${where}.passkey`)}
}
const object=checkObject(item,where,["by","ed25519","ml_dsa_65"])
const second=object.get("ml_dsa_65")
return {by:textField(object.get("by"),`${where}.by`,FINGERPRINT),ed25519:textField(object.get("ed25519"),`${where}.ed25519`,ED25519$1),ml_dsa_65:second===""?"":textField(second,`${where}.ml_dsa_65`,ML_DSA_65$1),passkey:null}
}
function statementBytes(purpose,content) {
if (!isObject(content)) throw new BadInput("a statement's content is an object")
const canonical=encoder.encode(canonicalJson(content))
const limit=purpose==="checkpoint"||purpose==="report"?CHECKPOINT_MAX:STATEMENT_MAX$1
if (canonical.length>limit) throw new BadInput(`a ${purpose} statement's content is at most ${limit} bytes`)
const start=encoder.encode(`aver/${purpose}/v1\n`)
const message=new Uint8Array(start.length+canonical.length)
message.set(start)
message.set(canonical,start.length)
return message
}
function checkStatement(statement,ring,ed25519) {
const message=statementBytes(statement.purpose,statement.content)
return statement.signatures.map(signature=>{
const candidates=ring.lookup(signature.by)
const holds=key=>ed25519.verify(key.ed25519,message,signature.ed25519)&&(key.mlDsa===""||verifyMlDsa(key.mlDsa,message,signature.ml_dsa_65))
const key=candidates.find(holds)
if (key!==void 0) return {by:signature.by,outcome:"valid",key}
if (!candidates.length&&!ring.keys.some(holds)) return {by:signature.by,outcome:"unknown",key:null}
return {by:signature.by,outcome:"invalid",key:null}
})
}
// src/verify/passkey.ts
var ES256="ES256"
var EDDSA="EdDSA"
var SIGNATURE_MAX=4096
var CREDENTIAL_MAX=1364
var RP_ID_MAX=253
var P256_ORDER=115792089210356248762697446949407573529996955224135760342422259061068512044369n
var BASE64URL=/^[A-Za-z0-9_-]+$/
var P256_PUBLIC=/^04[0-9a-f]{128}$/
var ED25519_PUBLIC=/^[0-9a-f]{64}$/
var RP_ID=/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/
function encodeBase64url(bytes) {
let text=""
for (const byte of bytes) text+=String.fromCharCode(byte)
return btoa(text).replaceAll("+","-").replaceAll("/","_").replaceAll("=","")
}
function decodeBase64url(text) {
if (!BASE64URL.test(text)||text.length%4===1) throw new BadInput("it is not base64url without padding")
const bytes=Uint8Array.from(atob(text.replaceAll("-","+").replaceAll("_","/")),unit=>unit.charCodeAt(0))
if (encodeBase64url(bytes)!==text) throw new BadInput("its base64url has stray bits at the end")
return bytes
}
var Passkey=class Passkey {
constructor(data,where) {
const object=checkObject(data,`${where}.passkey`,["alg","public_key","rp_id","credential"])
const alg=object.get("alg")
if (alg!=="ES256"&&alg!=="EdDSA") throw new BadInput(`${where}: passkey.alg must be one of ${ES256}, ${EDDSA}`)
this.alg=alg
this.publicKey=textField(object.get("public_key"),`${where}: passkey.public_key`,alg==="ES256"?P256_PUBLIC:ED25519_PUBLIC)
this.rpId=textField(object.get("rp_id"),`${where}: passkey.rp_id`,RP_ID)
this.credential=textField(object.get("credential"),`${where}: passkey.credential`,BASE64URL)
if (this.rpId.length>RP_ID_MAX||this.credential.length>CREDENTIAL_MAX) throw new BadInput(`${where}: the passkey is too long`)
decodeBase64url(this.credential)
this.fingerprint=toHex$1(sha256Bytes(fromHex(this.publicKey))).slice(0,16)
}
fields() {
return new Map([["alg",this.alg],["public_key",this.publicKey],["rp_id",this.rpId],["credential",this.credential]])
}
equals(other) {
return other instanceof Passkey&&other.alg===this.alg&&other.publicKey===this.publicKey&&other.rpId===this.rpId&&other.credential===this.credential
}
}
function readPasskeySignature(data,where) {
const object=checkObject(data,where,["authenticator_data","client_data","signature"])
const part=name=>textField(object.get(name),`${where}.${name}`,BASE64URL)
const signed={authenticator_data:part("authenticator_data"),client_data:part("client_data"),signature:part("signature")}
if (Object.values(signed).reduce((sum,text)=>sum+text.length,0)>SIGNATURE_MAX) throw new BadInput(`${where} has more than ${SIGNATURE_MAX} characters`)
return signed
}
function statementChallenge(message) {
return encodeBase64url(sha256Bytes(message))
}
function readDer(bytes) {
let place=2
const readInteger=()=>{
const size=bytes[place+1]??0
const digits=bytes.subarray(place+2,place+2+size)
if (bytes[place]!==2||size<1||size>33||digits.length!==size) return null
if (digits[0]&128||digits[0]===0&&size>1&&!(digits[1]&128)) return null
place+=2+size
const value=BigInt(`0x${toHex$1(digits)}`)
return value>=1n&&value<115792089210356248762697446949407573529996955224135760342422259061068512044369n?value:null
}
if (bytes[0]!==48||bytes[1]!==bytes.length-2) return null
const r=readInteger()
const s=r===null?null:readInteger()
return r===null||s===null||place!==bytes.length?null:{r,s}
}
function normaliseEs256(bytes) {
const read=readDer(bytes)
if (read===null) throw new BadInput("the authenticator's signature is not in DER")
const {r,s}=read
const body=[r,s>115792089210356248762697446949407573529996955224135760342422259061068512044369n/2n?P256_ORDER-s:s].map(value=>{
const even=value.toString(16).length%2?`0${value.toString(16)}`:value.toString(16)
const hex=Number.parseInt(even.slice(0,2),16)&128?`00${even}`:even
return `02${(hex.length/2).toString(16).padStart(2,"0")}${hex}`
}).join("")
return fromHex(`30${(body.length/2).toString(16).padStart(2,"0")}${body}`)
}
// src/verify/curves.ts
var P$1=2n**255n-19n
var L$1=2n**252n+27742317777372353535851937790883648493n
var Point=edwards({p:P$1,n:L$1,h:8n,a:P$1-1n,d:37095705934669439343138083508754565189542113879843219016388785533085940283555n,Gx:15112221349535400772501151409588531511454012693041857206046113283949847762202n,Gy:46316835694926478169428394003475163141307993866256225615783033603165251855960n})
var P256=weierstrass({p:115792089210356248762697446949407573530086143415290314195533631308867097853951n,n:P256_ORDER,h:1n,a:115792089210356248762697446949407573530086143415290314195533631308867097853948n,b:41058363725152142129326129780047268409114441015993725554835256314039467401291n,Gx:48439561293906451759052585252797914202762949526041747995844080717082404635286n,Gy:36134250956749795798585127919587881956611106672985015071877198253568414405109n});
// src/verify/ed25519.ts
var SIGNATURE=/^[0-9a-f]{128}$/
var PUBLIC=/^[0-9a-f]{64}$/
var SIGNATURE_DIGITS=128
var SMALL_ORDER=new Set(["0000000000000000000000000000000000000000000000000000000000000000","0100000000000000000000000000000000000000000000000000000000000000","26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05","c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a","ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f","edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f","eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"])
var P_AFTER_FIRST=`${"f".repeat(60)}7f`
var ANSWERS_KEPT=2e4
var KEYS_KEPT=64
function isSignatureHex(signature) {
return SIGNATURE.test(signature)
}
function readLittleEndian(bytes) {
let value=0n
for (let at=bytes.length-1; at>=0; at--) value=value<<8n|BigInt(bytes[at])
return value
}
function withoutSign(pointHex) {
const high=Number.parseInt(pointHex[62],16)&7
return `${pointHex.slice(0,62)}${high}${pointHex[63]}`
}
function isBelowP(y) {
return y.slice(2)!==P_AFTER_FIRST||y.slice(0,2)<"ed"
}
function isBelowL(scalarHex) {
const last=scalarHex.slice(62)
return last<"10"||last==="10"&&readLittleEndian(fromHex(scalarHex))<L$1
}
function hasGoodForm(publicHex,signature) {
if (!PUBLIC.test(publicHex)||!SIGNATURE.test(signature)) return false
const key=withoutSign(publicHex)
if (SMALL_ORDER.has(key)||SMALL_ORDER.has(withoutSign(signature.slice(0,64)))) return false
return isBelowP(key)&&isBelowL(signature.slice(64))
}
function holdsByPoints(publicHex,message,signature) {
if (!hasGoodForm(publicHex,signature)) return false
try {
const key=Point.fromHex(publicHex,true)
const first=fromHex(signature.slice(0,64))
const hashed=new Uint8Array(64+message.length)
hashed.set(first)
hashed.set(fromHex(publicHex),32)
hashed.set(message,64)
const k=readLittleEndian(sha512(hashed))%L$1
const s=readLittleEndian(fromHex(signature.slice(64)))
return toHex$1(mulAddUnsafe(Point,[Point.BASE,key.negate()],[s,k]).toBytes())===signature.slice(0,64)
} catch {
return false
}
}
function isPrimeOrderPoint(publicHex) {
try {
if (!PUBLIC.test(publicHex)) return false
const y=withoutSign(publicHex)
return !SMALL_ORDER.has(y)&&isBelowP(y)&&Point.fromHex(publicHex,true).isTorsionFree()
} catch {
return false
}
}
var Ed25519=class {
isPlatformGood=false
answers=new Map()
keys=new Map()
async checkPlatform(cases) {
this.isPlatformGood=false
if (typeof globalThis.crypto?.subtle?.importKey!=="function") return false
for (const {public:key,message,signature,valid} of cases) if ((hasGoodForm(key,signature)&&await this.askPlatform(key,encoder.encode(message),signature))!==valid) return false
this.isPlatformGood=cases.length>0
return this.isPlatformGood
}
get usesPlatform() {
return this.isPlatformGood
}
async prefetch(questions) {
if (!this.isPlatformGood) return
if (this.answers.size>ANSWERS_KEPT) this.answers.clear()
const waiting=[]
for (const {publicHex,message,signature} of questions) {
const name=publicHex+signature+message
if (this.answers.has(name)||!hasGoodForm(publicHex,signature)) continue
waiting.push(this.askPlatform(publicHex,encoder.encode(message),signature).then(isValid=>{
this.answers.set(name,isValid)
}))
}
await Promise.all(waiting)
}
adopt(questions,answers) {
if (this.answers.size>ANSWERS_KEPT) this.answers.clear()
questions.forEach(({publicHex,message,signature},at)=>{
if (signature.length===SIGNATURE_DIGITS) this.answers.set(publicHex+signature+message,answers[at]===true)
})
}
verify(publicHex,message,signature) {
if (typeof message==="string"&&signature.length===SIGNATURE_DIGITS) {
const known=this.answers.get(publicHex+signature+message)
if (known!==void 0) return known
}
return holdsByPoints(publicHex,typeof message==="string"?encoder.encode(message):message,signature)
}
async askPlatform(publicHex,message,signature) {
try {
if (this.keys.size>KEYS_KEPT) this.keys.clear()
let key=this.keys.get(publicHex)
if (key===void 0) {
key=crypto.subtle.importKey("raw",fromHex(publicHex),"Ed25519",false,["verify"])
this.keys.set(publicHex,key)
}
return await crypto.subtle.verify("Ed25519",await key,fromHex(signature),message)
} catch {
return false
}
}
}
var SECTIONS=["trigger","context","reasoning","authority","execution","outcome"]
var TYPES=["agent","tool","system","kill","workflow","chat","vault","auth"]
var TRIGGER_TYPES=["user_request","scheduled","system","agent"]
var AUTHORITY_TYPES=["autonomous","human_approved","policy","escalated","unknown"]
var STATUSES$1=["pending","success","failure","partial","blocked"]
var SCORE_MIN=1e-4
var UUID$1=/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
var CPS_TIMESTAMP=/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?\+00:00$/
var TIMESTAMP=/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?\+00:00$/
var text$3=value=>typeof value==="string"?null:"must be a string"
var textOrNull=value=>value===null||typeof value==="string"?null:"must be a string or null"
var object=value=>isObject(value)?null:"must be an object"
var flag=value=>typeof value==="boolean"?null:"must be a boolean"
var anything=()=>null
var textList=value=>!Array.isArray(value)?"must be an array":value.every(item=>typeof item==="string")?null:"must be an array of strings"
var objectList=value=>!Array.isArray(value)?"must be an array":value.every(isObject)?null:"must be an array of objects"
var count$1=value=>!isInteger(value)?"must be an integer":value.text.startsWith("-")&&value.text!=="-0"?"may not be negative":null
var score=value=>{
if (!(value instanceof JsonNumber)) return "must be a number"
return value.value>=0&&value.value<=1?null:"lies outside 0.0 to 1.0"
}
var uuid=value=>text$3(value)??(UUID$1.test(value)?null:"is not a UUID in lower case with hyphens")
var uuidOrNull=value=>value===null?null:uuid(value)
var hashOrNull=value=>textOrNull(value)??(value===null||HEX64.test(value)?null:"is not 64 lower-case hex digits")
var timestamp=value=>{
if (typeof value!=="string") return "must be a string"
if (!CPS_TIMESTAMP.test(value)) return "is not ISO 8601 in UTC with +00:00"
return isCalendarTime(value)?null:"is not a date that exists"
}
var oneOf=allowed=>value=>text$3(value)??(allowed.includes(value)?null:`is not one of ${allowed.join(", ")}`)
var TOP_LEVEL={id:uuid,type:oneOf(TYPES),domain:text$3,parent_id:uuidOrNull,sequence:count$1,previous_hash:hashOrNull,spec_version:oneOf(["1.0"]),...Object.fromEntries(SECTIONS.map(name=>[name,object]))}
var CAPSULE_KEYS=Object.keys(TOP_LEVEL)
var SECTION_RULES={trigger:{type:oneOf(TRIGGER_TYPES),source:text$3,timestamp,request:text$3,correlation_id:textOrNull,user_id:textOrNull},context:{agent_id:text$3,session_id:textOrNull,environment:object},reasoning:{analysis:text$3,options:objectList,options_considered:textList,selected_option:text$3,reasoning:text$3,confidence:score,model:textOrNull,prompt_hash:hashOrNull},authority:{type:oneOf(AUTHORITY_TYPES),approver:textOrNull,policy_reference:textOrNull,chain:objectList,escalation_reason:textOrNull},execution:{tool_calls:objectList,duration_ms:count$1,resources_used:object},outcome:{status:oneOf(STATUSES$1),result:anything,summary:text$3,error:textOrNull,side_effects:textList,metrics:object}}
var OPTION={id:text$3,description:text$3,pros:textList,cons:textList,estimated_impact:object,feasibility:score,risks:textList,selected:flag,rejection_reason:text$3}
var TOOL_CALL={tool:text$3,arguments:object,result:anything,success:flag,duration_ms:count$1,error:textOrNull}
var CPS_KEYS=Object.fromEntries(Object.entries(SECTION_RULES).map(([section,rules])=>[section,Object.keys(rules)]))
function findCpsProblem(content,{complete}) {
const parts=[["",content,TOP_LEVEL]]
for (const [name,rules] of Object.entries(SECTION_RULES)) parts.push([`${name}.`,content.get(name),rules])
const reasoning=content.get("reasoning")
if (complete) {
const lists=[["reasoning.options",reasoning.get("options"),OPTION],["execution.tool_calls",content.get("execution").get("tool_calls"),TOOL_CALL]]
for (const [field,items,rules] of lists) if (Array.isArray(items)&&items.every(isObject)) items.forEach((item,at)=>parts.push([`${field}[${at}].`,item,rules]))
}
for (const [prefix,part,rules] of parts) for (const [key,rule] of Object.entries(rules)) {
const value=part.get(key)
if (value===void 0) {
if (complete) return `${prefix}${key} is missing`
} else {
const problem=rule(value)
if (problem!==null) return `${prefix}${key} ${problem}`
}
}
return complete?findSelectionProblem(reasoning):null
}
function findSelectionProblem(reasoning) {
const options=reasoning.get("options")
const chosen=options.filter(option=>option.get("selected"))
if (chosen.length>1) return "reasoning.options: more than one option is marked as selected"
const selected=reasoning.get("selected_option")
if (options.length&&selected) {
const named=options.filter(option=>selected===option.get("id")||selected===option.get("description"))
if (!named.length) return "reasoning.selected_option is none of the options"
if (chosen.length&&!named.includes(chosen[0])) return "reasoning.selected_option is not the option marked as selected"
}
return null
}
var LISTED$4=new Map([TOP_LEVEL,OPTION,TOOL_CALL,...Object.values(SECTION_RULES)].map(rules=>[rules,Object.entries(rules)]))
function followsRules(part,rules) {
const listed=LISTED$4.get(rules)
if (part.size!==listed.length) return false
for (let at=0; at<listed.length; at++) {
const rule=listed[at]
const value=part.get(rule[0])
if (value===void 0||rule[1](value)!==null) return false
}
return true
}
function isPlainScore(value) {
return isFloat(value)&&(value.value>=SCORE_MIN&&value.value<=1||value.value===0)
}
function isPlainlyValid(content) {
if (!isObject(content)||!followsRules(content,TOP_LEVEL)) return false
const sections=SECTIONS.map(name=>content.get(name))
const [trigger,,reasoning,,execution]=sections
for (const [at,name] of SECTIONS.entries()) if (!followsRules(sections[at],SECTION_RULES[name])) return false
const time=trigger.get("timestamp")
const sequence=content.get("sequence").value
const calls=execution.get("tool_calls")
return sequence===0===(content.get("previous_hash")===null)&&TIMESTAMP.test(time)&&!time.endsWith(".000000+00:00")&&isPlainScore(reasoning.get("confidence"))&&calls.every(call=>followsRules(call,TOOL_CALL))&&arePlainOptions(reasoning)
}
function arePlainOptions(reasoning) {
const options=reasoning.get("options")
const considered=reasoning.get("options_considered")
const selected=reasoning.get("selected_option")
if (options.length!==considered.length) return false
if (!options.length) return true
let chosen=0
let isNamed=selected===""
for (const [at,option] of options.entries()) {
if (!followsRules(option,OPTION)||option.get("description")!==considered[at]) return false
const isSelected=option.get("selected")===true
if (!isPlainScore(option.get("feasibility"))) return false
if (!isSelected&&strip(option.get("rejection_reason"))==="") return false
if (selected===option.get("id")||selected===option.get("description")) isNamed=true
else if (selected!==""&&isSelected) return false
if (isSelected) chosen++
}
return chosen<=1&&isNamed
}
// src/verify/record.ts
var SCALARS=["id","type","domain","sequence","previous_hash","parent_id"]
function readRecord(sealed) {
const content=sealed.value
const {isCanonical}=sealed
if (isPlainlyValid(content)&&isPlace(content.get("sequence"))) return {content,isCanonical,isValid:true}
const capsule=checkShape(content)
const reasoning=capsule.get("reasoning")
const options=reasoning.get("options")
const scores=[reasoning.get("confidence"),...Array.isArray(options)?options.map(option=>isObject(option)?option.get("feasibility"):void 0):[]]
return {content:capsule,isCanonical:isCanonical&&!scores.some(isInteger),isValid:false}
}
function checkShape(content) {
if (!isObject(content)) throw new Unreadable("a capsule must be a JSON object")
for (const name of [...SCALARS,...SECTIONS]) if (!content.has(name)) throw new Unreadable(`the key '${name}' is missing`)
for (const name of SECTIONS) if (!isObject(content.get(name))) throw new Unreadable(`${name} must be an object`)
const isText=name=>typeof content.get(name)==="string"
const isTextOrNull=name=>content.get(name)===null||isText(name)
if (isText("id")&&isText("type")&&isText("domain")&&isPlace(content.get("sequence"))&&isTextOrNull("previous_hash")&&isTextOrNull("parent_id")) return content
throw new Unreadable("id, type, domain, parent_id, sequence or previous_hash is not of its type")
}
var AGENT_CAPSULE_KEYS={trigger:["type","source","request"],context:["agent_id","session_id","environment"],reasoning:["analysis","reasoning","model"],authority:["type"],execution:["tool_calls","duration_ms","resources_used"],outcome:["status","summary","side_effects"]}
function examineProfile(content) {
if (!content.has("spec_version")) {
const complete=new Map(content).set("spec_version","1.0")
const found=isPlainlyValid(complete)?{profile:"cps",problem:""}:examineProfile(complete)
return {profile:`${found.profile} without spec_version`,problem:found.problem}
}
const section=name=>content.get(name)
const hasAll=keys=>Object.entries(keys).every(([name,list])=>list.every(key=>section(name).has(key)))
let profile="other"
if (hasAll(CPS_KEYS)&&Object.entries(CPS_KEYS).every(([name,list])=>section(name).size===list.length)) profile="cps"
else if (hasAll(AGENT_CAPSULE_KEYS)&&!section("trigger").has("timestamp")&&!section("reasoning").has("options")) profile="agent-capsule"
return {profile,problem:findCpsProblem(content,{complete:profile!=="agent-capsule"})??""}
}
// src/verify/ring.ts
var ED25519=/^[0-9a-f]{64}$/
var ML_DSA_65=/^[0-9a-f]{3904}$/
var IDENTITY=/^(?:ledger|(?:agent|person|policy):[A-Za-z0-9_-][A-Za-z0-9._-]{0,63})$/
var PURPOSES=["seal","approve","policy","checkpoint"]
var EPOCH_MAX=1e6
var CLASSIC="ed25519"
var HYBRID="ed25519+ml-dsa-65"
var PublicKey=class {
constructor(ed25519,mlDsa="") {
if (typeof ed25519!=="string"||!ED25519.test(ed25519)) throw new BadInput("an Ed25519 public key is 64 lower-case hex digits")
if (mlDsa!==""&&(typeof mlDsa!=="string"||!ML_DSA_65.test(mlDsa))) throw new BadInput("an ML-DSA-65 public key is 3904 lower-case hex digits")
this.ed25519=ed25519
this.mlDsa=mlDsa
}
get fingerprint() {
return this.ed25519.slice(0,16)
}
get algorithm() {
return this.mlDsa?HYBRID:CLASSIC
}
equals(other) {
return this.ed25519===other.ed25519&&this.mlDsa===other.mlDsa
}
}
var KeyRole=class {
constructor(identity,purpose,algorithm) {
this.identity=identity
this.purpose=purpose
this.algorithm=algorithm
}
get maySeal() {
return this.purpose==="seal"
}
get mayAttest() {
return this.purpose==="checkpoint"||this.identity==="ledger"&&this.purpose==="seal"
}
toString() {
return `${this.identity}, purpose ${this.purpose}`
}
}
var ENTRY_KEYS=[...["identity","purpose","epoch","created_at","retired_at","statement"],...["public_key","public_key_pq","algorithm","fingerprint","status"]]
function readRingEntry(data,where="entry") {
const object=checkObject(data,where,ENTRY_KEYS)
const get=name=>object.get(name)
const [identity,purpose,epoch,statement]=[get("identity"),get("purpose"),get("epoch"),get("statement")]
if (typeof identity!=="string"||!IDENTITY.test(identity)) throw new BadInput(`${where} names no identity`)
if (typeof purpose!=="string"||!PURPOSES.includes(purpose)) throw new BadInput(`${where} names no purpose`)
if (!isInteger(epoch)||!(epoch.value>=0&&epoch.value<=EPOCH_MAX)) throw new BadInput(`${where} has a bad epoch`)
const entry={identity,purpose,epoch:epoch.value,key:new PublicKey(get("public_key"),get("public_key_pq")),createdAt:timeField(get("created_at"),`${where}.created_at`),retiredAt:get("retired_at")===null?null:timeField(get("retired_at"),`${where}.retired_at`),statement:statement===null?null:readStatement(statement,`${where}.statement`)}
const derived={algorithm:entry.key.algorithm,fingerprint:entry.key.fingerprint,status:entry.retiredAt===null?"active":"retired"}
for (const [name,value] of Object.entries(derived)) if (get(name)!==value) throw new BadInput(`${where}.${name} contradicts the rest of the entry`)
return entry
}
var Ring=class {
bySigner=new Map()
byKey=new Map()
constructor(keys=[]) {
const known=new Map()
for (const given of keys) {
const key=given instanceof PublicKey?given:given.key
if (!(given instanceof PublicKey)) this.byKey.set(key.ed25519,given)
known.set(key.ed25519,mergeKeys(known.get(key.ed25519),key))
}
this.keys=[...known.values()]
this.published=[...this.byKey.values()]
for (const key of this.keys) for (const name of [key.fingerprint,`qp_key_${key.ed25519.slice(0,4)}`]) this.bySigner.set(name,[...this.bySigner.get(name)??[],key])
}
lookup(signedBy) {
return this.bySigner.get(signedBy)??[]
}
entryOf(key) {
return this.byKey.get(key.ed25519)??null
}
roleOf(key) {
const entry=this.entryOf(key)
return entry===null?null:new KeyRole(entry.identity,entry.purpose,entry.key.algorithm)
}
retirementTimes(ed25519) {
const times=new Map()
const note=(key,at)=>{
const before=times.get(key)
if (at!==null) times.set(key,before!==void 0&&before<at?before:at)
}
for (const entry of this.published) {
note(entry.key.ed25519,entry.retiredAt)
const rotation=entry.statement===null?null:readRotation(entry.statement,ed25519)
if (rotation!==null) note(rotation.old.ed25519,rotation.at)
}
return times
}
}
function mergeKeys(known,key) {
if (known===void 0) return key
if (known.mlDsa&&key.mlDsa&&known.mlDsa!==key.mlDsa) throw new BadInput(`the fingerprint ${key.fingerprint} already belongs to another key`)
return known.mlDsa?known:key
}
function readRotation(statement,ed25519) {
try {
const side=name=>{
const described=statement.content.get(name)
if (!(described instanceof Map)) throw new BadInput("a rotation names two keys")
if (!described.has("public_key_pq")) throw new BadInput("a rotation names both halves")
return new PublicKey(described.get("public_key"),described.get("public_key_pq"))
}
const [old,next]=[side("old"),side("new")]
const identity=statement.content.get("identity")
const at=timeField(statement.content.get("at"),"at")
if (statement.purpose!=="rotation"||typeof identity!=="string"||old.ed25519===next.ed25519) return null
const results=checkStatement(statement,new Ring([old,next]),ed25519)
const signed=key=>results.some(one=>one.outcome==="valid"&&one.key?.equals(key))
return signed(old)&&signed(next)?{identity,old,new:next,at}:null
} catch (error) {
if (error instanceof BadInput) return null
throw error
}
}
// src/verify/verdict.ts
var CHECKS=[...["schema","canonical","content","signature","signature_pq","links","genesis","identity","columns"],...["store","keys","blobs","meta","profile"]]
var INTEGRITY_CHECKS=new Set([...CHECKS,"index","head","page","parts","archive","report","rollback","checkpoint"])
INTEGRITY_CHECKS.delete("profile")
var RUN_CHECKS=["receipts","parents","sealed","gates","proof"]
var ACT_CHECKS=["evidence","effects","delegation"]
var FINDINGS_KEPT$1=100
var NOTE_MAX=400
var DOES_NOT_APPLY="does not apply here"
function toCount(value) {
const number=Number(value)
return Number.isSafeInteger(number)?number:value
}
function place(chain=null,sequence=null,source=null) {
return {chain,sequence:typeof sequence==="bigint"?toCount(sequence):sequence,source}
}
function unrecordedKey(key,trace) {
return trace===null?key:`${key} ${trace}`
}
var Tally=class {
records=0
chains=0
done=new Map()
findings=[]
counts=new Map()
skipped=new Map()
notes=new Map()
profiles=new Map()
doubtful=new Set()
unrecorded=new Map()
vouched=new Set()
add(finding) {
this.doubtful.add(finding.place.chain)
const counted=this.countOf(finding)
counted.count++
if (counted.count<=FINDINGS_KEPT$1) this.findings.push(finding)
}
countOf({check,status,code}) {
const name=`${check}\n${status}\n${code}`
let counted=this.counts.get(name)
if (counted===void 0) this.counts.set(name,counted={check,status,code,count:0})
return counted
}
fail(check,code,words,where=place(),proof) {
this.add({check,status:"failed",code,words,place:where,...proof===void 0?{}:{proof}})
}
warn(check,code,words,where=place()) {
this.add({check,status:"warning",code,words,place:where})
}
countDone(check,times=1) {
this.done.set(check,(this.done.get(check)??0)+times)
}
skip(check,reason,{matters}) {
const before=this.skipped.get(check)
if (before===void 0||matters&&!before.matters) this.skipped.set(check,{reason,matters})
}
hasFailed() {
return [...this.counts.values()].some(counted=>counted.status==="failed")
}
merge(other) {
this.records+=other.records
this.chains+=other.chains
for (const chain of other.doubtful) this.doubtful.add(chain)
for (const [signer,where] of other.unrecorded) if (!this.unrecorded.has(signer)) this.unrecorded.set(signer,where)
for (const signer of other.vouched) this.vouched.add(signer)
for (const [check,times] of other.done) this.countDone(check,times)
const room=new Map()
for (const finding of other.findings) {
const name=`${finding.check}\n${finding.status}\n${finding.code}`
const left=(room.get(name)??FINDINGS_KEPT$1-(this.counts.get(name)?.count??0))-1
room.set(name,left)
if (left>=0) this.findings.push(finding)
}
for (const counted of other.counts.values()) this.countOf(counted).count+=counted.count
for (const [check,{reason,matters}] of other.skipped) this.skip(check,reason,{matters})
for (const [check,note] of other.notes) {
const before=this.notes.get(check)
if (before===void 0) this.notes.set(check,note)
else if (!before.includes(note)&&before.length<NOTE_MAX) this.notes.set(check,`${before}; ${note}`)
}
for (const [profile,count] of other.profiles) this.profiles.set(profile,(this.profiles.get(profile)??0)+count)
}
}
function conclude(subject,tally,level="signature",expected=CHECKS) {
const checks=[...new Set([...expected,...tally.done.keys(),...tally.skipped.keys(),...tally.findings.map(one=>one.check)])].map(name=>buildCheck(name,tally))
return {subject,status:statusOf$1(checks,tally.findings,tally.records),level,records:tally.records,earlier:0,chains:tally.chains,first_bad:tally.findings.find(finding=>finding.status==="failed")??null,checks,findings:tally.findings}
}
function isUnknown({status,code}) {
return status==="not_checked"&&code==="UNKNOWN_SIGNER"
}
function heldOf({checks,records}) {
const signed=checks.find(({name})=>name==="signature")
if (signed===void 0||signed.status!=="not_checked") return signed===void 0?0:records
return isUnknown(signed)?Math.max(records-signed.count,0):0
}
function integrityOf(verdict) {
const {records}=verdict
const checks=verdict.checks.filter(({name})=>INTEGRITY_CHECKS.has(name))
if (checks.some(({status})=>status==="failed")) return "failed"
if (records===0) return "none"
return heldOf(verdict)===records&&!checks.some(isUnknown)?"intact":"unsigned"
}
function statusOf$1(checks,findings,records) {
if (findings.some(finding=>finding.status==="failed")) return "failed"
if (records===0) return "empty"
return checks.some(check=>check.status==="warning"||check.status==="not_checked"&&check.matters)?"qualified":"verified"
}
function buildCheck(name,tally) {
const skipped=tally.skipped.get(name)
for (const status of ["failed","not_checked","warning"]) {
const first=tally.findings.find(finding=>finding.check===name&&finding.status===status)
if (first===void 0) continue
let count=0
for (const counted of tally.counts.values()) if (counted.check===name&&counted.status===status) count+=counted.count
let more=count>1?` (${count} in all)`:""
if (skipped?.matters&&status!=="failed") more=`${more}; not all: ${skipped.reason}`
return {name,status,reason:first.words+more,code:first.code,place:first.place,count,matters:true}
}
const plain={name,code:null,place:null}
if (name==="profile"&&tally.profiles.size) {
const parts=[...tally.profiles].sort(([one],[other])=>one<other?-1:1)
const count=parts.reduce((sum,[,times])=>sum+times,0)
const reason=parts.map(([profile,times])=>`${profile}: ${times}`).join(", ")
return {...plain,status:"passed",reason,count,matters:false}
}
const times=tally.done.get(name)
if (times) {
if (skipped?.matters) return {...plain,status:"not_checked",reason:`not all: ${skipped.reason}`,count:times,matters:true}
return {...plain,status:"passed",reason:tally.notes.get(name)??`${times} checked`,count:times,matters:false}
}
const {reason,matters}=skipped??{reason:"does not apply here",matters:false}
return {...plain,status:"not_checked",reason,count:0,matters}
}
function verdictDocument(verdict) {
return {subject:verdict.subject,status:verdict.status,integrity:integrityOf(verdict),level:verdict.level,records:verdict.records,earlier:verdict.earlier,chains:verdict.chains,first_bad:verdict.first_bad,checks:verdict.checks.map(({name,status,reason,code,place:where,count})=>{
return {name,status,reason,code,place:where,count}
}),findings:verdict.findings}
}
// src/verify/chain.ts
function roleOf(rules,key) {
return rules.ring.roleOf(key)??rules.roles.get(key.ed25519)??null
}
function plainRules(ring,ed25519,more={}) {
return {ring,ed25519,level:"signature",requirePq:false,retired:new Map(),roles:new Map(),recorded:null,began:new Map(),crew:null,along:new Map(),...more}
}
var UNREADABLE_MAX=1e3
var REST_UNREAD=`more than ${UNREADABLE_MAX} records cannot be read or have not their hash; the rest was not read`
var WORDS_MAX$1=400
function makePrintable(words) {
const short=words.length>WORDS_MAX$1?`${cutText(words,WORDS_MAX$1)} …`:words
if (isPrintable(short)) return short
return [...short].map(one=>isPrintable(one)?one:`\\u{${(one.codePointAt(0)??0).toString(16)}}`).join("")
}
var ChainJudge=class {
tally=new Tally()
isFirst=true
unreadableCount=0
unparsedCount=0
validCount=0
counts={content:0,signature:0,links:0,keys:0}
verified=null
constructor(rules,options={}) {
const {chain=null,start=0,previous=null,identity={},source=null,needsBlock=false}=options
this.rules=rules
this.chain=chain
this.source=source
this.identity=identity
this.needsBlock=needsBlock
this.expected=start===null?null:BigInt(start)
this.beforeFirst=start===null
this.previous=previous
}
static *questions(rules,record) {
if (rules.level!=="signature"||!record.signature) return
const known=rules.ring.lookup(record.signed_by)
for (const key of known.length?known:rules.ring.keys) yield {publicHex:key.ed25519,message:record.hash,signature:record.signature}
const publicHex=rules.along.get(record.signed_by)
if (!known.length&&publicHex!==void 0) yield {publicHex,message:record.hash,signature:record.signature}
}
judge(record) {
this.tally.records++
let sequence=this.expected
let content=null
try {
const reading=readRecord(record)
content=reading.content
if (this.expected===null) sequence=this.expected=BigInt(content.get("sequence").text)
if (!reading.isCanonical) this.add("canonical","warning","NOT_CANONICAL","signed bytes are not in canonical form",sequence)
const problem=this.findProblem(record,content)
if (problem!==null) {
if (problem[1]==="HASH_MISMATCH") this.unreadableCount++
this.add(problem[0],"failed",problem[1],problem[2],sequence)
} else if (reading.isValid) this.validCount++
else {
const {profile,problem:invalid}=examineProfile(content)
this.tally.profiles.set(profile,(this.tally.profiles.get(profile)??0)+1)
if (invalid) this.add("profile","warning","NOT_VALID_CPS",`not valid by CPS: ${invalid}`,sequence)
}
} catch (error) {
this.unreadableCount++
if (error instanceof DuplicateKey) this.add("canonical","failed","DUPLICATE_KEY",error.message,sequence)
else if (error instanceof Unreadable) {
this.unparsedCount++
this.add("schema","failed","SCHEMA_INVALID",error.message,sequence)
} else {
this.unparsedCount++
this.add("schema","failed","SCHEMA_INVALID",`the record cannot be judged (${error.name})`,sequence)
content=null
}
}
this.isFirst=false
this.previous=record.hash
this.expected=sequence===null?null:sequence+1n
return content
}
get signer() {
return this.verified
}
unreadable(error,where="") {
this.tally.records++
this.unreadableCount++
const check=error.code==="DUPLICATE_KEY"?"canonical":"schema"
this.unparsedCount+=Number(check==="schema")
this.add(check,"failed",error.code,where+error.message,this.expected)
this.expected=this.expected===null?null:this.expected+1n
this.previous=null
this.isFirst=false
}
stopsReading() {
if (this.unreadableCount<=1e3) return false
this.add("schema","failed","NOT_READ",REST_UNREAD,this.expected)
return true
}
finish() {
const {tally,counts,rules}=this
const times=tally.records
if (times) {
tally.countDone("schema",times)
tally.countDone("canonical",times-this.unparsedCount)
if (times===1&&this.beforeFirst) {
counts.links=0
tally.skip("links","a record on its own: its neighbours are not here",{matters:false})
}
for (const [check,count] of Object.entries(counts)) if (count) tally.countDone(check,count)
if (this.validCount) tally.profiles.set("cps",(tally.profiles.get("cps")??0)+this.validCount)
}
if (rules.level==="structural") tally.skip("content","structural level: stored hashes were trusted",{matters:true})
if (rules.level!=="signature") tally.skip("signature",`${rules.level} level: signatures were not checked`,{matters:true})
return tally
}
findProblem(record,content) {
const {counts,rules}=this
if (rules.level!=="structural") {
counts.content++
if (record.computedHash!==record.hash) return ["content","HASH_MISMATCH","the content does not have the stored hash"]
}
if (rules.level==="signature") {
const problem=this.signatureProblem(record)
if (problem!==null) return problem
}
const environment=content.get("context").get("environment")
const found=isObject(environment)?environment.get("aver"):void 0
const block=isObject(found)?found:null
if (block===null) {
if (this.needsBlock) return ["identity","CHAIN_IDENTITY","not sealed by a ledger: it lacks the block that appending adds"]
} else if (this.needsBlock&&!(block.has("at")&&block.has("by")&&block.has("kind"))) return ["identity","CHAIN_IDENTITY","not sealed by a ledger: its block lacks what appending adds"]
else if (block.has("at")&&block.get("at")!==record.signed_at) return ["signature","SEAL_MISMATCH",`signed_at says ${record.signed_at}, the record another time`]
else if (block.has("by")&&block.get("by")!==record.signed_by) return ["signature","SEAL_MISMATCH",`signed_by says ${record.signed_by}, the record another signer`]
counts.links++
let problem=this.placeProblem(content)
if (problem===null&&this.isFirst) problem=this.identityProblem(content,block)
if (problem===null&&this.verified!==null) {
counts.keys++
problem=this.keyProblem(record,this.verified,content,block)
}
return problem
}
signatureProblem(record) {
const {ring,ed25519,requirePq}=this.rules
this.verified=null
this.counts.signature++
if (!record.signature) return ["signature","SIG_MISSING","the record is not signed"]
const known=ring.lookup(record.signed_by)
for (const key of known.length?known:ring.keys) {
if (!ed25519.verify(key.ed25519,record.hash,record.signature)) continue
this.verified=key
if (!known.length) {
const note=`signer '${record.signed_by}' is the known key ${key.fingerprint}`
this.tally.notes.set("signature",makePrintable(note))
}
const isPqSigner=key.mlDsa!==""||roleOf(this.rules,key)?.algorithm==="ed25519+ml-dsa-65"
return record.signature_pq||isPqSigner||requirePq?this.pqProblem(record,key,isPqSigner):null
}
if (known.length) return ["signature","SIG_INVALID",`the signature is not ${record.signed_by}'s over this hash`]
if (!isSignatureHex(record.signature)) return ["signature","SIG_INVALID","the signature is not one that any key can have made"]
this.counts.signature--
const words=`the key of signer ${record.signed_by||"unnamed"} is not known here`
this.add("signature","not_checked","UNKNOWN_SIGNER",words,this.expected)
return this.pqProblem(record,null,false)
}
pqProblem(record,signer,isPqSigner) {
const name=record.signed_by||"the signer"
const {requirePq}=this.rules
if (!record.signature_pq) {
const words="there is no post-quantum signature"
if (requirePq) return ["signature_pq","SIG_MISSING",`${words}, and one is required`]
if (signer!==null&&isPqSigner) {
const more=`${words}, though ${name} signs with ML-DSA-65 too: it may have been stripped`
this.add("signature_pq","warning","SIG_MISSING",more,this.expected)
}
} else if (signer!==null&&signer.mlDsa) {
if (!verifyMlDsa(signer.mlDsa,encoder.encode(record.hash),record.signature_pq)) return ["signature_pq","SIG_INVALID",`the ML-DSA-65 signature is not ${name}'s over this hash`]
this.tally.countDone("signature_pq")
} else if (requirePq) return ["signature_pq","SIG_INVALID",`no ML-DSA-65 key of ${name} is known`]
else if (!isMlDsaSignatureHex(record.signature_pq)) return ["signature_pq","SIG_INVALID","the ML-DSA-65 signature is not one that any key can have made"]
else this.add("signature_pq","not_checked","UNKNOWN_SIGNER",`no ML-DSA-65 key of ${name} is known here`,this.expected)
return null
}
placeProblem(content) {
const sequence=BigInt(content.get("sequence").text)
const link=content.get("previous_hash")
if (sequence!==this.expected) return ["links","SEQUENCE_GAP",`expected sequence ${this.expected}, the record says ${sequence}`]
if (sequence===0n) {
this.tally.countDone("genesis")
if (link!==null) return ["genesis","GENESIS_INVALID","the first record points at a predecessor"]
} else if (link===null) return ["genesis","GENESIS_INVALID",`record ${sequence} claims to be the first`]
else if (this.previous===null) this.tally.skip("links",`the record before sequence ${sequence} is not here`,{matters:false})
else if (link!==this.previous) return ["links","CHAIN_BREAK","previous_hash is not the hash of the record before"]
return null
}
identityProblem(content,block) {
const names=Object.entries(this.identity)
if (BigInt(content.get("sequence").text)!==0n||!names.length) return null
const named=block?.get("chain")
if (!isObject(named)) {
if (this.needsBlock) return ["identity","CHAIN_IDENTITY","the first record does not say which chain it begins"]
this.tally.skip("identity","made by other software, which does not name its chain",{matters:false})
return null
}
this.tally.countDone("identity")
for (const [key,value] of names) if (named.get(key)!==value) return ["identity","CHAIN_IDENTITY",`stored as ${key} '${value}', but says it is another`]
return null
}
keyProblem(record,verified,content,block) {
const {rules}=this
const key=verified.ed25519
const signer=verified.fingerprint
const name=this.identity["name"]??this.chain
const sequence=BigInt(content.get("sequence").text)
const began=rules.began.get(key)
let isRecorded=rules.recorded===null||rules.recorded.has(key)
if (began!==void 0&&name!==null&&sequence<BigInt(began.get(name)??0)) isRecorded=false
if (!isRecorded) {
const unrecorded=unrecordedKey(key,name?.startsWith("protocol.")?this.chain:null)
if (!this.tally.unrecorded.has(unrecorded)) this.tally.unrecorded.set(unrecorded,place(this.chain,this.expected,this.source))
}
const role=roleOf(rules,verified)
if (role!==null&&(!role.maySeal||name===null||RESERVED_CHAINS.has(name))) {
const problem=findMisuse(role,verified,content,name??content.get("domain"))
if (problem!==null) return ["keys","KEY_MISMATCH",`${signer} is a key of ${role}: ${problem}`]
}
const retirement=rules.retired.get(key)
if (retirement===void 0) return null
if (retirement.limits!==null&&name!==null) {
const limit=retirement.limits.get(name)??0
return sequence>=BigInt(limit)?["keys","KEY_RETIRED",`${signer} was retired when this chain had ${limit} records`]:null
}
const at=block?.has("at")?block.get("at"):record.signed_at
if (retirement.retiredAt&&!(typeof at==="string"&&at<=retirement.retiredAt)) return ["keys","KEY_RETIRED",`${signer} was retired at ${retirement.retiredAt}`]
const words=`how far the retired key ${signer} was good is not recorded here; only times were compared`
this.tally.skip("keys",words,{matters:true})
return null
}
add(check,status,code,words,sequence) {
this.tally.add({check,status,code,words:makePrintable(words),place:place(this.chain,sequence,this.source)})
}
}
var SHARED_MIN=8
async function prepareRecords(rules,records) {
const questions=records.flatMap(record=>[...ChainJudge.questions(rules,record)])
if (rules.crew?.isBusy===false&&records.length>=SHARED_MIN&&rules.ed25519.usesPlatform) {
const {hashes,answers}=await rules.crew.work(records.map(record=>record.canonical),questions)
records.forEach((record,at)=>record.adoptHash(hashes[at]))
rules.ed25519.adopt(questions,answers)
return
}
const asked=rules.ed25519.prefetch(questions)
for (const record of records) record.computedHash
await asked
}
var AHEAD_EACH=5
async function* prepareBatches(rules,batches,pick) {
const ahead=AHEAD_EACH*(rules.crew?.size??0)
const waiting=[]
for await (const items of batches) {
await rules.crew?.rested()
const ready=prepareRecords(rules,pick(items))
ready.catch(()=>{})
waiting.push({items,ready})
while (waiting.length>ahead) {
const next=waiting.shift()
await next.ready
yield next.items
}
}
for (const {items,ready} of waiting) {
await ready
yield items
}
}
function findMisuse(role,key,content,chain) {
if (!RESERVED_CHAINS.has(chain)) return role.maySeal?null:"it must not seal records"
if (role.mayAttest) return null
if (chain==="keys"&&role.maySeal&&describesKey(content,role,key)) return null
return `only the ledger's key seals the chain ${chain}`
}
function describesKey(content,role,key) {
const result=content.get("outcome").get("result")
const kind=readKind(content)
if (!["key.create","key.rotate","key.retire"].includes(kind)||!isObject(result)) return false
return (result.get("public_key")===key.ed25519||kind!=="key.create")&&equalJson(result.get("identity"),role.identity)&&equalJson(result.get("purpose"),role.purpose)
}
// src/verify/examiner.ts
var EXAMINED_DOMAINS=new Map([["gate",["decisions"]],["approvals",["approvals"]],["approvers",["approvals"]],["actions",RUN_CHECKS],["gateway",ACT_CHECKS],["delegations",["delegation"]],["protocol",["protocol"]]])
var PYTHON_ALONE=new Map([["gate",["decisions","changes"]],["gateway",ACT_CHECKS],["delegations",["delegation"]],["protocol",["protocol"]]])
var PYTHON_WORDS="a page cannot make this check; run: aver verify"
function selectChains(examination,...domains) {
return examination.chains.filter(chain=>domains.includes(domainOf(chain.origin)))
}
async function examine$1(examiners,examination,tally) {
for (const domain of new Set(examination.chains.map(chain=>domainOf(chain.origin)))) skipPythonChecks(domain,tally)
for (const examiner of examiners) {
const chains=selectChains(examination,...examiner.domains)
if (!chains.length) continue
const {reader}=examination
reader.leftOut=null
try {
await guard(tally,examiner.checks[0],place(chains[0].name),async ()=>{
tally.merge(await examiner.examine(examination))
})
} catch (error) {
if (!(error instanceof BadInput)) throw error
for (const check of examiner.checks) tally.skip(check,`the records cannot be read: ${error.message}`,{matters:true})
}
if (reader.leftOut!==null) for (const check of examiner.checks) tally.skip(check,"records that do not hold were left out",{matters:true})
}
}
function skipPythonChecks(domain,tally) {
for (const check of PYTHON_ALONE.get(domain)??[]) tally.skip(check,PYTHON_WORDS,{matters:true})
}
function skipExaminers(domain,reason,tally) {
for (const check of EXAMINED_DOMAINS.get(domain)??[]) tally.skip(check,reason,{matters:true})
}
async function guard(tally,check,where,work) {
try {
await work()
} catch (error) {
if (error instanceof NotFound) throw error
const words=error instanceof BadInput?error.message:`it lacks keys of a record of its kind (${error.name})`
tally.fail(check,"SCHEMA_INVALID",words,where)
}
}
var ValidRecords=class {
leftOut=null
constructor(reader,rules,names,doubtful) {
this.reader=reader
this.rules={...rules,retired:new Map()}
this.names=names
this.doubtful=doubtful
}
async *read(chain) {
const name=this.names.get(chain)
if (name===void 0) throw new NotFound(`the chain ${chain} is not here`)
for await (const record of this.reader.read(name)) if (!this.doubtful.has(name)||this.holds(record,name)) yield record
}
async get(hash) {
const record=await this.reader.get(hash)
return record!==null&&this.holds(record,record.chain)?record:null
}
blob(digest) {
return this.reader.blob(digest)
}
has(chain) {
const name=this.names.get(chain)
return name!==void 0&&(this.reader.head(name)?.count??0)>0
}
holds(record,chain) {
const judge=new ChainJudge(this.rules,{chain,start:null})
judge.judge(record)
const failed=judge.tally.findings.find(finding=>finding.status==="failed")
if (failed!==void 0) this.leftOut??=failed.place
return failed===void 0
}
}
function readChainIdentity(record) {
let named
try {
named=record===null?void 0:readBlock(record.content)?.get("chain")
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
return isObject(named)&&named.size?named:null
}
// src/verify/heads.ts
function readHead(data) {
const keys=["ledger","tenant","chain","count","hash"]
if (!isObject(data)||data.size!==keys.length||!keys.every(key=>data.has(key))) throw new BadInput("a head has exactly the keys ledger, tenant, chain, count and hash")
const [ledger,tenant,chain,count,hash]=keys.map(key=>data.get(key))
for (const name of [ledger,tenant,chain]) if (typeof name!=="string"||!name.isWellFormed()) throw new BadInput("a head's ledger, tenant and chain are strings")
if (!isPlace(count)) throw new BadInput("a head's count is a number of records")
if (Number(count.text)===0!==(hash===null)||hash!==null&&!(typeof hash==="string"&&HEX64.test(hash))) throw new BadInput("a head's hash is 64 lower-case hex digits, or null when there are no records")
return {ledger,tenant,chain,count:toCount(BigInt(count.text)),hash}
}
function equalHeads(one,other) {
return one.ledger===other.ledger&&one.tenant===other.tenant&&one.chain===other.chain&&one.count===other.count&&one.hash===other.hash
}
function checkHead(head,actual,actualHash,tally,check,remembered) {
tally.countDone(check)
if (head.count===0) return false
if (actual===null) {
const words=`${remembered} has this chain with ${head.count} records; it is not here`
tally.fail(check,"CHAIN_MISSING",words,place(head.chain),{...head})
return false
}
const proof={remembered:{...head},actual:{...actual}}
if (actual.count<head.count) {
const words=`${remembered} has ${head.count} records of this chain; ${actual.count} are here`
tally.fail(check,"TRUNCATED",words,place(head.chain,actual.count),proof)
} else if (actualHash!==head.hash) {
const words=`${remembered} has another record at this place`
tally.fail(check,"ROLLBACK",words,place(head.chain,BigInt(head.count)-1n),proof)
}
return actual.count>head.count&&actualHash===head.hash
}
// src/verify/blobs.ts
var BLOB_REFERENCE="\"blob\":{"
function* blobReferences(value) {
const stack=[value]
while (stack.length) {
const item=stack.pop()
if (isObject(item)) {
const reference=item.get("blob")
if (isObject(reference)&&item.size===1&&reference.get("alg")==="sha256") {
const digest=reference.get("digest")
const size=reference.get("size")
if (typeof digest==="string"&&HEX64.test(digest)&&isInteger(size)) {
yield {digest,size:size.text==="-0"?"0":size.text}
continue
}
}
for (const member of item.values()) stack.push(member)
} else if (Array.isArray(item)) for (const member of item) stack.push(member)
}
}
// src/verify/run/action.ts
var ACTION_TYPES=[...["tool_call","code_gen","code_edit","api_request","decision","observation","file_read","file_write"],...["file_delete","shell_exec","command","browser_action","web_request","action","unknown"]]
var DECISIONS$1=["pass","skip","human_review","human_approved","skipped"]
var POLICY_VERDICTS=["PROOF_ONLY","POLICY_ENFORCED","FULLY_VERIFIED"]
var FIELDS$1=[...["action_id","action_type","instruction_hash","input_hash","output_hash","parent_action_id"],...["parent_receipt_hash","gate_score","gate_decision","policy_verdict","success","duration_ms"],...["timestamp","metadata"]]
var OPTIONAL=new Set([...["parent_action_id","parent_receipt_hash","gate_score","gate_decision","policy_verdict","metadata"]])
var ID_MAX=256
var DURATION_MAX=2**53
var METADATA_INLINE=8192
var METADATA_MAX=4194304
var TIME=/^(\d{4}-\d\d-\d\d)(?:(T\d\d:\d\d)(?:(:\d\d)(?:[.,]\d+)?)?(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$/
function actionFields(action) {
return new Map(FIELDS$1.map(name=>[name,action[name]]))
}
function readAction(data) {
if (!isObject(data)) throw new BadInput("an action must be an object")
for (const name of data.keys()) if (!FIELDS$1.includes(name)) throw new BadInput(`${show$1(name)} is not a field of an action`)
const get=name=>{
const value=data.get(name)
if (value!==void 0) return value
if (OPTIONAL.has(name)) return null
throw new BadInput(`the action lacks '${name}'`)
}
const check=(name,isGood)=>{
const value=get(name)
if (!isGood(value)) throw new BadInput(`${name} has a bad value`)
return value
}
const isId=value=>typeof value==="string"&&value!==""&&codePoints(value)<=ID_MAX&&isPrintable(value)
const isHash=value=>typeof value==="string"&&HEX64.test(value)
const orNull=isGood=>value=>value===null||isGood(value)
const oneOf=words=>value=>typeof value==="string"&&words.includes(value)
FIELDS$1.forEach(get)
return {action_id:check("action_id",isId),parent_action_id:check("parent_action_id",orNull(isId)),action_type:check("action_type",oneOf(ACTION_TYPES)),gate_decision:check("gate_decision",orNull(oneOf(DECISIONS$1))),policy_verdict:check("policy_verdict",orNull(oneOf(POLICY_VERDICTS))),instruction_hash:check("instruction_hash",isHash),input_hash:check("input_hash",isHash),output_hash:check("output_hash",isHash),parent_receipt_hash:check("parent_receipt_hash",orNull(isHash)),gate_score:check("gate_score",orNull(value=>value instanceof JsonNumber&&value.value>=0&&value.value<=1)),success:check("success",value=>typeof value==="boolean"),duration_ms:check("duration_ms",value=>isInteger(value)&&value.value>=0&&BigInt(value.text)<=BigInt(DURATION_MAX)),timestamp:check("timestamp",value=>typeof value==="string"&&isTime(value)),metadata:check("metadata",orNull(isObject))}
}
function isTime(text) {
const [whole,date,time="T00:00",seconds=":00"]=TIME.exec(text)??[]
return whole!==void 0&&isCalendarTime(`${date}${time}${seconds}`)
}
var hasZone=time=>TIME.exec(time)?.[4]!==void 0
var RECEIPT_KEYS=[...["action_id","action_type","instruction_hash","input_hash","output_hash","parent_action_id"],...["parent_receipt_hash","gate_score","gate_decision","success","duration_ms","timestamp"]]
var RECEIPT_KEY_COUNT=RECEIPT_KEYS.length
var CAPSEAL_KEYS=[...RECEIPT_KEYS,"policy_verdict"]
function encodeAction(action) {
const receipt=receiptText(action)
if (metadataBlobDigest(action.metadata)!==null) throw new BadInput("metadata must not be a reference to a blob")
const metadata=action.metadata===null?"null":canonicalJson(action.metadata)
if (encoder.encode(metadata).length>METADATA_MAX) throw new BadInput(`metadata has more than ${METADATA_MAX} bytes`)
return {receipt,receiptHash:sha256Hex(receipt),metadata}
}
function receiptText(action) {
const fields=actionFields(action)
return asciiJson(new Map(RECEIPT_KEYS.map(name=>[name,fields.get(name)])))
}
function receiptHash(action) {
return sha256Hex(receiptText(action))
}
function metadataBlobDigest(metadata) {
if (!isObject(metadata)||metadata.size!==1||!metadata.has("blob")) return null
for (const {digest,size} of blobReferences(metadata)) if (BigInt(size)>BigInt(METADATA_INLINE)) return digest
return null
}
function sealForm(action,texts) {
const fields=actionFields(action)
const data=encoder.encode(texts.metadata)
let metadata=action.metadata
if (data.length>METADATA_INLINE) {
const reference=[["alg","sha256"],["digest",sha256Hex(data)],["size",new JsonNumber(String(data.length))],["media","application/json"]]
metadata=new Map([["blob",new Map(reference)]])
}
return canonicalJson(fields.set("metadata",metadata))
}
var ACTION_LINE_MAX=ELEMENT_MAX
function readActionLine(raw) {
const content=readJson(raw)
if (!isObject(content)) throw new Unreadable("a line of actions must be a JSON object")
const stored=content.get("receipt_hash")
const fields=content.get("canonical_fields")??null
content.delete("receipt_hash")
content.delete("canonical_fields")
let action
let texts
try {
action=readAction(content)
texts=encodeAction(action)
} catch (error) {
throw error instanceof BadInput?new Unreadable(error.message):error
}
if (typeof stored!=="string"||!HEX64.test(stored)) throw new Unreadable("the action has no receipt_hash of 64 lower-case hex digits")
const own=actionFields(action)
const line={action,texts,receiptHash:stored}
if (fields===null) {
for (const keys of [RECEIPT_KEYS,CAPSEAL_KEYS]) if (isReceipt(stored,new Map(keys.map(name=>[name,own.get(name)])),null)) return {...line,keys:keys.length,problem:null}
return {...line,keys:RECEIPT_KEYS.length,problem:"receipt_hash is not the hash of the action's fields"}
}
const hasKeys=keys=>isObject(fields)&&fields.size===keys.length&&keys.every(name=>fields.has(name))
if (!isObject(fields)||!(hasKeys(RECEIPT_KEYS)||hasKeys(CAPSEAL_KEYS))) throw new Unreadable("canonical_fields are neither the 12 keys of a receipt nor those with policy_verdict")
if ([...fields.values()].some(value=>isObject(value)||Array.isArray(value))) throw new Unreadable("canonical_fields hold something that is no field of an action")
return {...line,keys:fields.size,problem:receiptProblem(own,stored,fields)}
}
function receiptProblem(own,stored,fields) {
if (!isReceipt(stored,fields,fields.get("gate_score"))) return "receipt_hash is not the hash of canonical_fields"
for (const [name,value] of fields) {
const beside=own.get(name)
if (!equalJson(value,beside)||typeof value==="boolean"!==(typeof beside==="boolean")) return `canonical_fields say another ${name} than the action`
}
return null
}
function isReceipt(stored,fields,asWritten) {
const value=fields.get("gate_score")
const scores=new Set([asciiJson(value)])
if (asWritten instanceof JsonNumber) scores.add(asWritten.text)
if (isInteger(value)&&(value.value===0||value.value===1)) scores.add(pythonRepr(value.value+0))
for (const score of scores) if (sha256Hex(`{${[...fields.keys()].sort().map(key=>{
return `${asciiString(key)}:${key==="gate_score"?score:asciiJson(fields.get(key))}`
}).join(",")}}`)===stored) return true
return false
}
function* readRawLines(data,limit) {
for (let at=0; at<data.length;) {
const {line,next}=readEachLine(data,at,limit)
at=next
if (!(line instanceof BadInput)&&line.length===0) while (at<data.length&&[32,9,10,13].includes(data[at])) at++
else yield line
}
}
function* readOwnLines(data,limit) {
for (let at=0; at<data.length;) {
const {line,next}=readEachLine(data,at,limit)
at=next
if (!(line instanceof BadInput)&&line.length===0) {
yield new Unreadable("the line is empty, and Aver writes no empty lines; the rest was not read")
return
}
yield line
}
}
function readEachLine(data,at,limit) {
const feed=data.indexOf(10,at)
const next=feed<0?data.length:feed+1
if (next-at>limit+1) return {line:new Unreadable(`the line is longer than ${limit} bytes`),next}
let end=next
while (end>at&&(data[end-1]===10||data[end-1]===13)) end--
return {line:data.subarray(at,end),next}
}
// src/verify/merkle.ts
var EMPTY_ROOT=sha256Bytes(new Uint8Array())
function hashWith(prefix,...parts) {
const data=new Uint8Array(1+parts.reduce((size,part)=>size+part.length,0))
data[0]=prefix
let at=1
for (const part of parts) {
data.set(part,at)
at+=part.length
}
return sha256Bytes(data)
}
function leafHash(data) {
return hashWith(0,data)
}
var MerkleTree=class {
size=0
peaks=[]
add(leaf) {
let node=leaf
for (let size=this.size; size%2===1; size=Math.floor(size/2)) node=hashWith(1,this.peaks.pop(),node)
this.peaks.push(node)
this.size++
}
get root() {
let node=null
for (const peak of [...this.peaks].reverse()) node=node===null?peak:hashWith(1,peak,node)
return node??EMPTY_ROOT
}
}
function rootFromPath(leaf,index,size,path) {
if (!(index>=0&&index<size)) return null
let node=leaf
let last=size-1
for (const sibling of path) {
if (last===0) return null
if (index%2===1||index===last) {
node=hashWith(1,sibling,node)
while (index%2===0) {
index=Math.floor(index/2)
last=Math.floor(last/2)
}
} else node=hashWith(1,node,sibling)
index=Math.floor(index/2)
last=Math.floor(last/2)
}
return last===0?node:null
}
// src/verify/run/trace.ts
var AIR_ID="aver_agent_air_v1"
var CONSTRAINTS={row:["booleans","passed_only_if_gated","enforced_only_if_passed","parent_only_if_linked"],transition:["next_index","next_parent_is_receipt","next_has_parent"],boundary:["first_index_is_zero","first_has_no_parent","last_receipt_is_final","last_index_is_count"]}
var PATH_MAX=64
var NO_PARENT="0".repeat(64)
function buildRow$1(index,action,texts) {
const parent=action.parent_receipt_hash
const isPassed=action.gate_decision==="pass"||action.gate_decision==="human_approved"
const rest=sha256Hex(`{"metadata":${texts.metadata},"policy_verdict":${canonicalJson(action.policy_verdict)}}`)
const data=new Uint8Array(440)
const view=new DataView(data.buffer)
let column=0
const put=value=>view.setBigUint64(8*column++,BigInt(value))
put(index)
put(1+ACTION_TYPES.indexOf(action.action_type))
for (const hash of [action.instruction_hash,action.input_hash,action.output_hash,parent??NO_PARENT,texts.receiptHash,rest]) {
const bytes=new DataView(fromHex(hash).buffer)
for (let limb=0; limb<8; limb++) put(bytes.getUint32(4*limb))
}
put(Number(parent!==null))
put(Number(action.success))
put(Number(action.gate_decision!==null))
put(Number(isPassed))
put(Number(isPassed&&action.policy_verdict==="POLICY_ENFORCED"))
return {index,hasParent:parent!==null,parent:parent??NO_PARENT,receipt:texts.receiptHash,leaf:leafHash(data)}
}
var Trace=class {
count=0
problem=null
tree=new MerkleTree()
last=null
take(action,texts) {
const row=buildRow$1(this.count,action,texts)
const broken=this.problem===null?brokenConstraint(this.last,row):null
if (broken!==null) this.problem=`${broken}, row ${this.count}`
this.last=row
this.tree.add(row.leaf)
this.count++
}
get root() {
return toHex$1(this.tree.root)
}
problemAtEnd(count,finalReceipt) {
if (this.problem!==null) return this.problem
if (this.last===null||this.last.index!==count-1) return `last_index_is_count, ${this.count} rows`
return this.last.receipt===finalReceipt?null:`last_receipt_is_final, row ${this.count-1}`
}
}
function brokenConstraint(before,row) {
if (before===null) return row.hasParent?"first_has_no_parent":null
if (row.parent!==before.receipt) return "next_parent_is_receipt"
return row.hasParent?null:"next_has_parent"
}
var FIXED=[["air_id",AIR_ID],["field","goldilocks"],["row_width",new JsonNumber(String(55))],["receipt_keys",new JsonNumber(String(RECEIPT_KEY_COUNT))]]
function statementFields(statement) {
return new Map([...FIXED,["run_id",statement.runId],["num_actions",new JsonNumber(String(statement.numActions))],["final_receipt_hash",statement.finalReceiptHash],["row_root",statement.rowRoot]])
}
function readRunStatement(data) {
const names=["run_id","num_actions","final_receipt_hash","row_root"]
const all=[...FIXED.map(([name])=>name),...names]
if (!isObject(data)||data.size!==all.length||!all.every(name=>data.has(name))) throw new BadInput("a statement about a run has other keys")
for (const [name,value] of FIXED) {
const here=data.get(name)
if (!(value instanceof JsonNumber?isInteger(here)&&here.text===value.text:here===value)) throw new BadInput(`the statement's ${name} is another`)
}
const [runId,count,final,root]=names.map(name=>data.get(name))
if (typeof runId!=="string"||!isInteger(count)||count.value<1) throw new BadInput("a statement names a run and how many actions it has")
if (typeof final!=="string"||typeof root!=="string"||!HEX64.test(final)||!HEX64.test(root)) throw new BadInput("a statement's receipt and root are 64 lower-case hex digits")
return {runId,numActions:count.value,finalReceiptHash:final,rowRoot:root}
}
function traceProblem(statement,trace) {
if (trace.count!==statement.numActions) return `the statement is about ${statement.numActions} actions; there are ${trace.count}`
const broken=trace.problemAtEnd(statement.numActions,statement.finalReceiptHash)
if (broken!==null) return `a constraint does not hold: ${broken}`
return trace.root===statement.rowRoot?null:"the rows have another root than the statement says"
}
function inclusionProblem(statement,index,action,path) {
if (path.length>PATH_MAX||!path.every(step=>typeof step==="string"&&HEX64.test(step))) return "the path is not one"
if (!(index>=0&&index<statement.numActions)) return `the run has no place ${index}`
const texts=encodeAction(action)
const {leaf}=buildRow$1(index,action,texts)
const root=rootFromPath(leaf,index,statement.numActions,path.map(step=>fromHex(step)))
if (root===null||toHex$1(root)!==statement.rowRoot) return `the action does not lead to the run's root from place ${index}`
return index===statement.numActions-1&&texts.receiptHash!==statement.finalReceiptHash?"the last action has another receipt than the statement says":null
}
var ONE=new JsonNumber("1")
function runChain(runId) {
return chainName("actions",runId)
}
function hasExactly$1(data,keys) {
return data.size===keys.length&&keys.every(key=>data.has(key))
}
function readResult(content) {
const result=at(content,"outcome","result")
if (!isObject(result)||!equalJson(result.get("v"),ONE)) throw new BadInput("the capsule's result is not one of this version")
return result
}
function readSealedAction(content) {
const result=readResult(content)
if (!hasExactly$1(result,["v","action","receipt_hash","gate"])) throw new BadInput("the capsule of an action has other keys in its result")
const [fields,receiptHash,gate]=["action","receipt_hash","gate"].map(name=>result.get(name))
if (typeof receiptHash!=="string") throw new BadInput("the capsule of an action names no receipt")
if (gate===null) return {fields,receiptHash,gate:null}
const names=["gate_id","record","digest","decision","diff_sha256"]
const hasClientAnswer=isObject(gate)&&gate.has("client_answer")
const canAnswer=!hasClientAnswer||gate.get("client_answer")==="yes"&&gate.get("decision")==="human_review"
if (!isObject(gate)||!canAnswer||!hasExactly$1(gate,hasClientAnswer?[...names,"client_answer"]:names)) throw new BadInput("the gate entry of an action has other keys")
for (const name of names) {
const value=gate.get(name)
if (typeof value!=="string"&&!(name==="diff_sha256"&&value===null)) throw new BadInput("the gate entry of an action has values that are not text")
}
const [gateId,record,digest,decision,diffSha256]=names.map(name=>gate.get(name))
return {fields,receiptHash,gate:{gateId,record,digest,decision,diffSha256:diffSha256??null,hasClientAnswer}}
}
async function loadAction(sealed,blob) {
const action=readAction(sealed.fields)
const digest=metadataBlobDigest(action.metadata)
if (digest===null) return action
const metadata=readJson(await blob(digest))
if (metadata!==null&&!isObject(metadata)) throw new BadInput("metadata must be an object")
return {...action,metadata}
}
function readRunSeal(content,of) {
const result=readResult(content)
const names=["gates","statement","head","run_id","num_actions","final_receipt_hash","policy_verdict"]
for (const name of names) if (!result.has(name)) throw new BadInput(`the run's seal cannot be read: it lacks ${name}`)
const [gates,statement,head,runId,count,final,verdict]=names.map(name=>result.get(name))
const place=[["ledger",of.ledger],["tenant",of.tenant]]
if (!isObject(head)) throw new BadInput("the run's seal cannot be read")
if (gates!==null&&!isObject(gates)) throw new BadInput("the run's seal cannot be read")
const seal={head:readHead(new Map([...place,["chain",of.chain],...head])),statement:statement===null?null:readRunStatement(statement),gates:gates===null?null:readHead(new Map([...place,...gates]))}
if (typeof runId!=="string"||!isInteger(count)||(count.value===0?final!==null:typeof final!=="string")) throw new BadInput("the run's seal cannot be read")
if (verdict!==null&&!(typeof verdict==="string"&&POLICY_VERDICTS.includes(verdict))) throw new BadInput("the run's seal has a verdict that is none")
return {...seal,runId,numActions:count.value,finalReceiptHash:final,policyVerdict:verdict}
}
function readDecision$1(content) {
if (readKind(content)!=="gate.decision") return null
const result=at(content,"outcome","result")
if (!isObject(result)) return null
const needed=["gate_id","decision","digest","score","action","instruction_sha256","input_sha256"]
if (!needed.every(name=>result.has(name))) return null
const [gateId,decision,digest,score,action,instructionHash,inputHash]=needed.map(name=>result.get(name))
const policy=result.get("policy")
if (isTrue(policy)&&!isObject(policy)) return null
const refs=at(content,"context","environment","aver","refs")
if (isTrue(refs)&&!isObject(refs)) return null
if (!isObject(action)||![gateId,decision,digest].every(text=>typeof text==="string")) return null
return {gateId,decision,digest,score,type:action.get("type"),diffSha256:action.get("diff_sha256"),files:action.get("files"),instructionHash,inputHash,isObserved:result.get("mode")==="observe"}
}
function isTrue(value) {
if (value instanceof JsonNumber) return value.value!==0
if (Array.isArray(value)) return value.length>0
return isObject(value)?value.size>0:Boolean(value)
}
function compareWithDecision(action,mark,decided) {
const none=value=>value===void 0||value===null
const files=action.metadata?.get("files_affected")
const areDiffsKnown=mark.diffSha256!==null&&!none(decided.diffSha256)
const areFilesKnown=isTrue(files)&&isTrue(decided.files)
const hasHash=!none(decided.instructionHash)||!none(decided.inputHash)
let mismatch=null
if (mark.gateId!==decided.gateId||mark.digest!==decided.digest) mismatch="the decision it names is about something else"
else if (action.gate_decision!==decided.decision||mark.decision!==decided.decision) mismatch=`it says that the gate decided ${action.gate_decision}; the gate's record says ${decided.decision}`
else if (!equalJson(action.gate_score,decided.score)) mismatch="it says another score than the gate's record"
else if (action.action_type!==decided.type) mismatch=`it is a ${action.action_type}; the gated action is another`
else if (["human_review","human_approved"].includes(decided.decision)&&mark.diffSha256!==null&&none(decided.diffSha256)) mismatch="a change was made, and the person was shown none"
else if (areDiffsKnown&&mark.diffSha256!==decided.diffSha256) mismatch="the change that was made is not the one that was gated"
else if (!none(decided.instructionHash)&&decided.instructionHash!==action.instruction_hash) mismatch="its instruction is not the one that was gated"
else if (!none(decided.inputHash)&&decided.inputHash!==action.input_hash) mismatch="its input is not the one that was gated"
else if (areFilesKnown&&!equalJson(files,decided.files)) mismatch="the files that it says it affects are not those that were gated"
return {mismatch,isConclusive:hasHash||areDiffsKnown||areFilesKnown}
}
// src/verify/approvals/tools.json
var tools_default={"descriptive":{"description":"Agent Bash Task","explanation":"codebase_search delete_file file_search grep_search list_dir read_file run_terminal_cmd web_search","justification":"exec_command local_shell shell shell_command","task_progress":"execute_command read_file write_to_file"},"telling":{"cmd":"exec_command","command":"Bash Monitor execute_command local_shell run_terminal_cmd shell shell_command","content file_path":"Write","content path":"write_to_file","target_file":"delete_file"}};
// src/verify/approvals/content.ts
function enrolmentContent({identity,key,custody},ledger,tenant,at) {
const parts=key instanceof Passkey?[["passkey",key.fields()]]:[["public_key",key.ed25519],["public_key_pq",key.mlDsa]]
return new Map([["identity",identity],...parts,["custody",custody],["ledger",ledger],["tenant",tenant],["at",at]])
}
function shownSha256({opened,content}) {
return sha256Hex(canonicalJson(new Map([["opened",opened],["request",content]])))
}
function voteContent(request,word,approver,shown,{scope=request.scope,uses=1}={}) {
const content=new Map([["digest",request.digest],["decision",word],["approver",approver],["expires",request.expires],["shown",shown]])
if (request.statement===1) return content
return new Map([...content,["v",new JsonNumber(String(request.statement))],["ledger",request.ledger],["tenant",request.tenant],["request",request.id],["scope",scope],["uses",new JsonNumber(String(uses))],...request.statement===3?[["shown_sha256",shownSha256(request)]]:[]])
}
// src/verify/passkey_signature.ts
var AUTHENTICATOR_DATA_MIN=37
var FLAGS_AT=32
var USER_PRESENT=1
var USER_VERIFIED=4
var PORT_MAX=65535
var ORIGIN=/^(https?):\/\/([a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?$/
function isP256Point(publicKey) {
try {
P256.fromHex(publicKey).assertValidity()
return true
} catch {
return false
}
}
function passkeyProblem(passkey,message,signed,ed25519) {
try {
const data=decodeBase64url(signed.authenticator_data)
const client=decodeBase64url(signed.client_data)
const signature=decodeBase64url(signed.signature)
const problem=clientDataProblem(client,passkey.rpId,statementChallenge(message))??authenticatorDataProblem(data,passkey.rpId)
if (problem!==null) return problem
const covered=new Uint8Array(data.length+32)
covered.set(data)
covered.set(sha256Bytes(client),data.length)
if (passkey.alg==="ES256") return es256Problem(passkey.publicKey,covered,signature)
return ed25519.verify(passkey.publicKey,covered,toHex$1(signature))?null:"its signature is not that of the key"
} catch (error) {
if (error instanceof BadInput) return error.message
throw error
}
}
function clientDataProblem(client,rpId,challenge) {
const found=readJson(client)
if (!isObject(found)) return "client_data is not an object"
if (found.get("type")!=="webauthn.get") return "client_data is not of the type webauthn.get"
if (found.get("challenge")!==challenge) return "it was signed for another statement"
if (found.has("crossOrigin")&&found.get("crossOrigin")!==false) return "it was signed inside a page of another origin"
return isOriginOf(found.get("origin"),rpId)?null:`it was signed on a page that does not belong to ${rpId}`
}
function isOriginOf(origin,rpId) {
const match=typeof origin==="string"?ORIGIN.exec(origin):null
if (match===null) return false
const [,scheme,host,port]=match
if (port!==void 0&&Number(port)>PORT_MAX) return false
if (rpId==="localhost") return scheme==="http"&&host==="localhost"
return scheme==="https"&&(host===rpId||host.endsWith(`.${rpId}`)&&RP_ID.test(host))
}
function authenticatorDataProblem(data,rpId) {
const site=toHex$1(sha256Bytes(encoder.encode(rpId)))
if (data.length<AUTHENTICATOR_DATA_MIN||toHex$1(data.subarray(0,FLAGS_AT))!==site) return `authenticator_data is not that of ${rpId}`
const flags=data[FLAGS_AT]
if (!(flags&USER_PRESENT)) return "nobody was present at the authenticator"
return flags&USER_VERIFIED?null:"the authenticator did not verify the person"
}
function es256Problem(publicKey,message,signature) {
const read=readDer(signature)
if (read===null) return "its signature is not in DER"
const {r,s}=read
if (s>115792089210356248762697446949407573529996955224135760342422259061068512044369n/2n) return "its signature has a high S: write n - S instead"
if (r<1n||r>=115792089210356248762697446949407573529996955224135760342422259061068512044369n||s<1n) return "its signature is not that of the key"
try {
const inverse=P256.Fn.inv(s)
const digest=BigInt(`0x${toHex$1(sha256Bytes(message))}`)%P256_ORDER
const key=P256.fromHex(publicKey)
key.assertValidity()
const sum=mulAddUnsafe(P256,[P256.BASE,key],[P256.Fn.mul(digest,inverse),P256.Fn.mul(r,inverse)])
return !sum.equals(P256.ZERO)&&sum.toAffine().x%115792089210356248762697446949407573529996955224135760342422259061068512044369n===r?null:"its signature is not that of the key"
} catch {
return "its signature is not that of the key"
}
}
// src/verify/approvals/roster.ts
var CUSTODIES=["passphrase","ssh-agent","file","passkey"]
var PASSKEY="passkey"
var VOUCHING=["passphrase","ssh-agent"]
var PERSON$1=/^person:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/
function isIndependent({custody,endorsers}) {
return custody==="passkey"?endorsers.some(endorser=>VOUCHING.includes(endorser.custody)):custody!=="file"
}
function wholeKey(key) {
return key instanceof Passkey?key.publicKey:key.ed25519
}
function isSameKey(one,other) {
return one instanceof Passkey?one.equals(other):other instanceof PublicKey&&one.equals(other)
}
function findRingEntry(ring,key) {
if (key instanceof PublicKey) return ring.entryOf(key)
return key.alg==="EdDSA"?ring.entryOf(new PublicKey(key.publicKey)):null
}
function isPerson(value) {
return typeof value==="string"&&PERSON$1.test(value)
}
function readApprover(identity,data,where) {
const isPasskey=isObject(data)&&data.get("custody")==="passkey"
const object=checkObject(data,where,[isPasskey?"passkey":"public_key","custody"],isPasskey?[]:["public_key_pq"])
if (!isPerson(identity)) throw new BadInput(`${where}: it names no person`)
if (isPasskey) return {identity,key:new Passkey(object.get("passkey"),where),custody:PASSKEY,endorsers:[]}
const key=new PublicKey(object.get("public_key"),object.has("public_key_pq")?object.get("public_key_pq"):"")
const custody=object.get("custody")
if (typeof custody!=="string"||!CUSTODIES.includes(custody)) throw new BadInput(`${where}.custody is none`)
return {identity,key,custody,endorsers:[]}
}
function approverKey({identity,key}) {
if (key instanceof Passkey) return [identity,key.alg,key.publicKey,key.rpId,key.credential].join("\n")
return [identity,key.ed25519,key.mlDsa].join("\n")
}
function signatureProblem(statement,key,verifier) {
if (key instanceof PublicKey) return checkStatement(statement,new Ring([key]),verifier).some(result=>result.by===key.fingerprint&&result.outcome==="valid")?null:"it does not hold"
const message=statementBytes(statement.purpose,statement.content)
let problem="it is not there"
for (const {by,passkey} of statement.signatures) {
if (by!==key.fingerprint||passkey===null) continue
problem=passkeyProblem(key,message,passkey,verifier)
if (problem===null) return null
}
return problem
}
var Roster=class {
approvers=new Map()
ended=new Map()
known=new Set()
keys=new Set()
constructor(verifier,ledger,tenant) {
this.verifier=verifier
this.ledger=ledger
this.tenant=tenant
}
hasHad(approver) {
return this.known.has(approverKey(approver))
}
hasHadKey(key) {
return this.keys.has(key.fingerprint)||this.keys.has(wholeKey(key))
}
apply(record,retired) {
const ended=new Set([...retired].filter(([,when])=>when<record.signed_at).map(([key])=>key))
const chain=at(record.content,"authority","chain")
if (!Array.isArray(chain)||!chain.length) throw new BadInput("it cannot be read")
const statement=readStatement(chain[0])
switch (record.kind) {
case "key.create":return this.enrol(statement,ended)
case "key.rotate":return this.rotate(statement)
case "key.retire":
this.withdraw(statement,ended)
return null
default:throw new BadInput(`it is of the kind ${record.kind}`)
}
}
enrol(statement,ended) {
const content=this.readContent(statement,"enrolment")
const described=new Map()
const names=need(content,"custody")==="passkey"?["passkey"]:["public_key","public_key_pq"]
for (const name of [...names,"custody"]) described.set(name,need(content,name))
const approver=readApprover(need(content,"identity"),described,"enrolment")
if (!equalJson(content,enrolmentContent(approver,this.ledger,this.tenant,need(content,"at")))) throw new BadInput("the enrolment says more than it should")
if (!isUsable(approver.key)) throw new BadInput(`${approver.key.fingerprint} is not a usable public key`)
if (signatureProblem(statement,approver.key,this.verifier)!==null) throw new BadInput("the enrolment is not signed by the key itself")
if (approver.custody==="passkey"&&!this.hasKeyBesidePasskeys(approver.identity)) throw new BadInput("a passkey is enrolled only beside an approver whose key is no passkey")
const endorsers=this.findEndorsers(statement,new Set([...ended,wholeKey(approver.key)]))
if (this.known.size&&!endorsers.length) throw new BadInput("the enrolment is not signed by anyone who was on the roster")
if (this.hasHadKey(approver.key)) throw new BadInput("the key was on the roster before")
return this.put({...approver,endorsers},need(content,"at"))
}
rotate(statement) {
const {content}=statement
const before=this.approvers.get(need(content,"identity"))
if (before===void 0) throw new BadInput("it cannot be read")
const [old,next]=[readKey(need(content,"old")),readKey(need(content,"new"))]
const when=timeField(need(content,"at"),"rotation.at")
if (statement.purpose!=="rotation"||!isSameKey(old,before.key)) throw new BadInput("the rotation is not of the key that is on the roster")
if (this.hasHadKey(next)) throw new BadInput("the key was on the roster before")
if ([old,next].some(key=>signatureProblem(statement,key,this.verifier)!==null)) throw new BadInput("the rotation is not signed by both keys")
return this.put({...before,key:next,endorsers:[]},when)
}
withdraw(statement,ended) {
const content=this.readContent(statement,"withdrawal")
const gone=this.approvers.get(need(content,"identity"))
if (gone===void 0) throw new BadInput("it cannot be read")
if (gone.key.fingerprint!==need(content,"fingerprint")) throw new BadInput("the withdrawal is not of the key that is on the roster")
if (!this.findEndorsers(statement,ended).length) throw new BadInput("the withdrawal is not signed by anyone on the roster")
if (this.approvers.size===1) throw new BadInput(`${gone.identity} is the last approver`)
if (!this.hasKeyBesidePasskeys(gone.identity)) throw new BadInput(`${gone.identity} is the last approver whose key is no passkey`)
this.approvers.delete(gone.identity)
this.ended.set(gone.key.fingerprint,need(content,"at"))
}
put(approver,when) {
const before=this.approvers.get(approver.identity)
if (before!==void 0) this.ended.set(before.key.fingerprint,when)
this.approvers.set(approver.identity,approver)
this.known.add(approverKey(approver))
this.keys.add(approver.key.fingerprint).add(wholeKey(approver.key))
return approver
}
readContent(statement,purpose) {
const {content}=statement
if (statement.purpose!==purpose) throw new BadInput(`its statement is of the purpose ${statement.purpose}, not ${purpose}`)
if (need(content,"ledger")!==this.ledger||need(content,"tenant")!==this.tenant) throw new BadInput("its statement was made for another ledger or tenant")
timeField(need(content,"at"),`${purpose}.at`)
return content
}
hasKeyBesidePasskeys(without) {
return [...this.approvers.values()].some(({identity,custody})=>identity!==without&&custody!=="passkey")
}
findEndorsers(statement,but) {
const named=new Set(statement.signatures.map(signature=>signature.by))
return [...this.approvers.values()].filter(({key})=>named.has(key.fingerprint)&&!but.has(wholeKey(key))&&signatureProblem(statement,key,this.verifier)===null).map(approver=>({...approver,endorsers:[]}))
}
}
function need(data,name) {
const value=data.get(name)
if (value===void 0) throw new BadInput("it cannot be read")
return value
}
function readKey(data) {
if (!isObject(data)) throw new BadInput("it cannot be read")
return new PublicKey(need(data,"public_key"),need(data,"public_key_pq"))
}
function isUsable(key) {
return key instanceof Passkey&&key.alg!=="EdDSA"?isP256Point(key.publicKey):isPrimeOrderPoint(wholeKey(key))
}
var LEVELS_MAX=8
var APPROVERS_MAX=64
var EXPIRES_MAX=604800
var USES_MAX=100
var WORKSPACE="workspace"
var PERSON_WORDS=["approve","deny","escalate"]
var VOTE_WORDS=[...PERSON_WORDS,"expired","closed","used"]
var EMPTY_SHA256=sha256Hex("")
var GATE_ID=/^[!-~]{1,128}$/
function integerField(value,where,low,high) {
if (!isInteger(value)||!(value.value>=low&&value.value<=high)) throw new BadInput(`${where} must be a whole number from ${low} to ${high}`)
return value.value
}
function readLevel(data,where) {
const object=checkObject(data,where,["approvers","quorum","after"])
const listed=object.get("approvers")
if (!Array.isArray(listed)||listed.length>APPROVERS_MAX||!listed.every(isPerson)) throw new BadInput(`${where}.approvers must be a list of people`)
if (new Set(listed).size<listed.length) throw new BadInput(`${where}.approvers names someone twice`)
return {approvers:listed,quorum:integerField(object.get("quorum"),`${where}.quorum`,1,APPROVERS_MAX),after:integerField(object.get("after"),`${where}.after`,0,EXPIRES_MAX)}
}
function readRequest(record,ledger,tenant) {
const {content}=record
const required=[...["v","digest","gate_id","action","diff","risk","reasons","rules","bundle"],...["expires","levels","approvers","anchor"]]
const result=checkObject(at(content,"outcome","result"),"the request",required,[...["statement","scope","uses","digest_version","beside"]])
checkVersion(result.get("v"),"the request")
const binding=readBinding(result)
const digestVersion=readDigestVersion(result)
if (binding.statement===3!==(digestVersion===3)) throw new BadInput("the request has a statement and a digest of two versions")
const listed=result.get("levels")
if (!Array.isArray(listed)||listed.length<1||listed.length>LEVELS_MAX) throw new BadInput("the request has no levels, or too many")
const given=result.get("approvers")
if (!isObject(given)) throw new BadInput("the record is not a request for approval")
const approvers=new Map([...given].map(([name,data])=>[name,readApprover(name,data,`the request: approvers.${name}`)]))
const levels=listed.map((item,number)=>readLevel(item,`the request: levels[${number}]`))
const deciding=new Set(levels.flatMap(level=>level.approvers))
if (deciding.size!==approvers.size||![...deciding].every(name=>approvers.has(name))) throw new BadInput("the request does not give a key for exactly those who decide")
if (new Set([...approvers.values()].map(one=>one.key.fingerprint)).size<approvers.size) throw new BadInput("two people have one key")
textField(result.get("gate_id"),"the request: gate_id",GATE_ID)
return {ledger,tenant,id:record.id,opened:timeField(readBlock(content)?.get("at"),"the request: at"),expires:timeField(result.get("expires"),"the request: expires"),digest:textField(result.get("digest"),"the request: digest",HEX64),levels,approvers,anchor:pythonText(result.get("anchor")),content:result,...binding,digestVersion}
}
function readBinding(result) {
const found=["statement","scope","uses"].filter(name=>result.has(name))
if (!found.length) return {statement:1,scope:""}
if (found.length<3) throw new BadInput("the request lacks statement, scope or uses")
const statement=integerField(result.get("statement"),"the request: statement",2,3)
integerField(result.get("uses"),"the request: uses",1,1)
const scope=result.get("scope")
if (typeof scope!=="string"||!scope.startsWith("session:")) throw new BadInput("the request: scope must be the one of a session")
return {statement,scope}
}
function readDigestVersion(result) {
const found=["digest_version","beside"].filter(name=>result.has(name))
if (!found.length) return 1
if (found.length<2) throw new BadInput("the request lacks digest_version or beside")
return integerField(result.get("digest_version"),"the request: digest_version",2,3)
}
function blobDigest(request,part) {
const value=request.content.get(part)
if (!isObject(value)||value.size!==1||!value.has("blob")) return null
return blobReferences(value).next().value?.digest??null
}
function hasScopeOf(request,action) {
const session=action.has("session")?pythonText(action.get("session")):""
return request.statement===1||request.scope===`session:${session}`
}
function matchesAction(request) {
const apart=blobDigest(request,"action")
if (apart!==null) return apart===request.digest
const action=request.content.get("action")
try {
if (sha256Hex(canonicalContent(action))!==request.digest||!isObject(action)) return false
if (request.digestVersion===1&&!hasScopeOf(request,action)) return false
if (request.digestVersion!==1&&blobDigest(request,"beside")===null&&!fitsWithRest(request,action)) return false
const diff=blobDigest(request,"diff")
if (diff!==null) return diff===action.get("diff_sha256")
const text=request.content.get("diff")
return (action.get("diff_sha256")??null)===(text===null?null:sha256Hex(pythonText(text)))
} catch (error) {
if (error instanceof BadInput) return false
throw error
}
}
function fitsWithRest(request,bound) {
const beside=checkObject(request.content.get("beside"),"the request: beside",["description","session","arguments"])
const [left,kept,diff]=[beside.get("arguments"),bound.get("arguments"),bound.get("diff_sha256")]
const {digestVersion}=request
if (!isObject(left)||!isObject(kept)||[...left.keys()].some(name=>kept.has(name))) return false
const isDescribed=digestVersion===3?bound.has("description"):!kept.size&&!isTrue(bound.get("files"))&&diff===null
const names=["v","type","tool","files","diff_sha256","workspace","caller","on_behalf_of","arguments","request_sha256"]
checkObject(bound,"the action",isDescribed?[...names,"description"]:names)
if (isDescribed&&!equalJson(bound.get("description"),beside.get("description"))) return false
return equalJson(bound.get("v"),new JsonNumber(String(digestVersion)))&&hasScopeOf(request,beside)
}
async function readDescription(request,blob) {
const apart=blobDigest(request,"beside")
let beside=request.content.get("beside")
if (apart!==null) {
const raw=await blob(apart)
if (sha256Hex(raw)!==apart) throw new BadInput("a blob has other bytes")
beside=readJson(raw)
}
const words=at(beside,"description")
if (typeof words!=="string") throw new BadInput("the request has no description")
return words
}
function listArguments(table,tool) {
return Object.entries(table).flatMap(([names,listed])=>listed.split(" ").includes(tool)?names.split(" "):[])
}
function needsDescription(action) {
const [tool,given,diff]=["tool","arguments","diff_sha256"].map(name=>action.get(name))
const telling=listArguments(tools_default.telling,tool)
const isTold=telling.length&&telling.every(name=>isObject(given)&&isTrue(given.get(name)))
return ((diff??null)===null||diff===EMPTY_SHA256)&&!isTold
}
function isByPerson(vote) {
return PERSON_WORDS.includes(vote.word)
}
function readVote(record) {
const {content}=record
const result=at(content,"outcome","result")
const when=()=>timeField(readBlock(content)?.get("at"),"the decision: at")
if (record.kind==="approval.use") {
const use=checkObject(result,"the use",["v","request","digest","number","uses","scope","session","call_id","approvers","level"])
checkVersion(use.get("v"),"the use")
const texts=["digest","scope","session","call_id"].map(name=>use.get(name))
const approvers=use.get("approvers")
if (!Array.isArray(approvers)||![...texts,...approvers].every(text=>typeof text==="string")) throw new BadInput("the use is none")
const [digest,scope,session]=texts
return {about:pythonText(use.get("request")),vote:{at:when(),word:"used",level:integerField(use.get("level"),"the use: level",0,LEVELS_MAX),approver:null,custody:null,shown:null,statement:null,use:{digest,scope,session,number:integerField(use.get("number"),"the use: number",1,USES_MAX),uses:integerField(use.get("uses"),"the use: uses",1,USES_MAX),approvers}}}
}
const vote=checkObject(result,"the decision",["v","request","digest","decision","approver","custody","level","comment","shown"])
checkVersion(vote.get("v"),"the decision")
const [word,custody,approver,comment]=["decision","custody","approver","comment"].map(name=>vote.get(name))
const isCustody=custody===null||typeof custody==="string"&&CUSTODIES.includes(custody)
if (typeof word!=="string"||!VOTE_WORDS.includes(word)||!isCustody||typeof comment!=="string") throw new BadInput("the decision is none")
if (!(approver===null||typeof approver==="string")) throw new BadInput("the decision has no approver")
const chain=at(content,"authority","chain")
if (!Array.isArray(chain)) throw new BadInput("the decision cannot be read")
if (PERSON_WORDS.includes(word)&&!chain.length) throw new BadInput("the decision cannot be read")
const shown=isTrue(vote.get("shown"))?blobReferences(vote.get("shown")).next().value?.digest??null:null
return {about:pythonText(vote.get("request")),vote:{at:when(),word,level:integerField(vote.get("level"),"the decision: level",0,LEVELS_MAX),approver,custody,shown,statement:PERSON_WORDS.includes(word)?readStatement(chain.at(-1)):null,use:null}}
}
function levelsFor(request,identity) {
return request.levels.flatMap((level,index)=>level.approvers.includes(identity)?[index+1]:[])
}
function readChoice(request,statement,word) {
const [scope,uses]=[statement.content.get("scope"),statement.content.get("uses")]
if (word!=="approve"||request.statement===1||request.digestVersion===1) return {scope:request.scope,uses:1}
const action=request.content.get("action")
const namesRequest=isObject(action)&&isTrue(action.get("request_sha256"))
const isCount=isInteger(uses)&&uses.value>=1&&uses.value<=USES_MAX
return {scope:scope===WORKSPACE&&!namesRequest?WORKSPACE:request.scope,uses:isCount?uses.value:1}
}
function voteProblem(request,vote,verifier) {
const {statement,approver}=vote
if (statement===null||approver===null||vote.shown===null||!HEX64.test(vote.shown)) return ["SIG_MISSING","it is not signed by anyone"]
if (statement.purpose!=="approval") return ["STATEMENT_MISMATCH",`its statement is of the purpose ${statement.purpose}`]
if (statement.content.get("digest")!==request.digest) return ["DIGEST_MISMATCH","it was signed for another action"]
const {scope,uses}=readChoice(request,statement,vote.word)
const expected=voteContent(request,vote.word,approver,vote.shown,{scope,uses})
if (canonicalJson(statement.content)!==canonicalJson(expected)) return ["STATEMENT_MISMATCH","it was signed for something else"]
if (!levelsFor(request,approver).length) return ["NOT_LISTED",`${approver} is not among those who decide this`]
const pinned=request.approvers.get(approver)
if (statement.signatures.length!==1||statement.signatures[0]?.by!==pinned.key.fingerprint) return ["UNKNOWN_KEY",`it is signed by another key than that of ${approver} in the request`]
if (pinned.custody==="passkey"&&request.statement===1) return ["STATEMENT_MISMATCH","a passkey signs no statement that names no request"]
const problem=signatureProblem(statement,pinned.key,verifier)
if (problem!==null) return ["SIG_INVALID",`the signature of ${approver} does not hold: ${problem}`]
if (vote.at>request.expires) return ["EXPIRED",`it came at ${vote.at}; the request expired at ${request.expires}`]
if (vote.at<request.opened) return ["CLOCK_BACKWARDS",`it came at ${vote.at}, before the request was opened`]
return null
}
function turnProblem(request,vote,approvals,floor) {
if (vote.word==="deny") return null
if (vote.word==="approve"&&approvals.some(earlier=>earlier.approver===vote.approver)) return ["ALREADY_DECIDED",`${vote.approver} has approved before`]
const level=findOpenLevel(request,vote,floor)
if (level===0) {
const last=levelsFor(request,vote.approver??"").at(-1)??0
return last<floor?["PASSED_ON",`level ${floor} decides now`]:["NOT_YET",`level ${last} decides later, or when asked`]
}
if (vote.word==="escalate"&&level===request.levels.length) return ["NO_LEVEL","nobody is above"]
return null
}
function findOpenLevel(request,vote,floor) {
return levelsFor(request,vote.approver??"").find(number=>canCount(request,vote,number,floor))??0
}
function canCount(request,vote,number,floor) {
const level=request.levels[number-1]
if (number<floor||!level.approvers.includes(vote.approver??"")) return false
return number===floor||vote.at>=addSeconds(request.opened,level.after)
}
function addSeconds(moment,seconds) {
const fraction=/\.(\d{6})/.exec(moment)?.[1]??""
const date=new Date(Date.parse(`${moment.slice(0,19)}Z`)+1e3*seconds)
if (date.getUTCFullYear()>9999) throw new Error("a time beyond the calendar")
return `${date.toISOString().slice(0,19)}${fraction===""||fraction==="000000"?"":`.${fraction}`}+00:00`
}
function computeState(request,votes,verifier,now,newest="") {
const pending={state:"pending",reason:"too few have approved",floor:1,scope:"",uses:0,used:0,approvers:[],validApprovals:[]}
let ending=null
for (const vote of votes) {
if (vote.word==="used"&&vote.use===null) return {...pending,state:"used",reason:`it was used at ${vote.at}`,used:1,floor:1,validApprovals:[]}
if (vote.word==="used") {
pending.used++
continue
}
if (!isByPerson(vote)) {
ending??=vote
continue
}
const problem=voteProblem(request,vote,verifier)??turnProblem(request,vote,pending.validApprovals,pending.floor)
if (vote.word==="deny") ending??=vote
if (problem!==null) continue
if (vote.word==="escalate") pending.floor=findOpenLevel(request,vote,pending.floor)+1
else if (vote.word==="approve") pending.validApprovals.push(vote)
}
const approved=findApproval(request,pending)
if (pending.used&&(approved===null||pending.used>=approved.uses)) return {...approved??pending,state:"used",reason:`it was used ${pending.used} times`}
if (ending!==null) {
const state=ending.word==="expired"?"expired":ending.word==="closed"?"closed":"denied"
return {...pending,state,reason:`${state} at ${ending.at}`}
}
if ((now>newest?now:newest)>request.expires) return {...pending,state:"expired",reason:`nobody decided until ${request.expires}`}
return approved??pending
}
function findApproval(request,pending) {
for (let number=pending.floor; number<=request.levels.length; number++) {
const approvals=pending.validApprovals.filter(vote=>canCount(request,vote,number,pending.floor))
if (approvals.length<request.levels[number-1].quorum) continue
const chosen=approvals.map(vote=>readChoice(request,vote.statement,vote.word))
const isWide=chosen.length>0&&chosen.every(({scope})=>scope===WORKSPACE)
return {...pending,state:"approved",reason:"",approvers:approvals.map(vote=>String(vote.approver)),scope:isWide?WORKSPACE:request.scope,uses:chosen.length?Math.min(...chosen.map(({uses})=>uses)):1}
}
return null
}
function useProblem(request,before,use) {
if (use.digest!==request.digest) return ["DIGEST_MISMATCH","it was used for another action"]
if (before.state==="used") return ["REPLAY",`the approval was used before: ${before.reason}`]
if (before.state!=="approved") return ["NOT_APPROVED",`it was used while it was ${before.state}: ${before.reason}`]
if (before.scope!==WORKSPACE&&before.scope!==`session:${use.session}`) return ["SCOPE_MISMATCH","it was used in another session"]
return use.number===before.used+1&&use.uses===before.uses&&use.scope===before.scope&&use.approvers.join("\n")===before.approvers.join("\n")?null:["EVIDENCE_INVALID","it says something else than people signed"]
}
// src/verify/approvals/examiner.ts
var CHECK$4="approvals"
var CODES$1={SIG_MISSING:"SIG_MISSING",SIG_INVALID:"SIG_INVALID",UNKNOWN_KEY:"SIG_INVALID",KEY_RETIRED:"KEY_RETIRED",DIGEST_MISMATCH:"EVIDENCE_INVALID",STATEMENT_MISMATCH:"EVIDENCE_INVALID",NOT_LISTED:"ROLE_POLICY_VIOLATION",ALREADY_DECIDED:"REPLAY",REPLAY:"REPLAY",NOT_APPROVED:"EVIDENCE_INVALID",SCOPE_MISMATCH:"EVIDENCE_INVALID",EVIDENCE_INVALID:"EVIDENCE_INVALID"}
var APPROVALS_EXAMINER={domains:["approvals","approvers"],checks:[CHECK$4],examine}
async function examine(examination) {
const {reader,tenant}=examination
const roster=chainName("approvers",tenant)
const approvals=chainName("approvals",tenant)
const checker=new ApprovalChecker(examination)
for (const [chain,check] of [[roster,record=>checker.checkEnrolment(record)],[approvals,record=>checker.checkRecord(record)]]) {
if (!reader.has(chain)) continue
for await (const record of reader.read(chain)) await guard(checker.tally,CHECK$4,placeOf(record),async ()=>check(record))
}
let {tally}=checker
if (!examination.isComplete&&!reader.has(roster)) {
tally=new Tally()
tally.skip(CHECK$4,"the approvers' enrolments are not here",{matters:true})
}
await checkWords(examination,checker.used,tally)
return tally
}
async function checkWords(examination,uses,tally) {
const {reader}=examination
for (const chain of uses.size?selectChains(examination,"gate"):[]) for await (const record of reader.read(chain.origin)) {
const decision=readDecision$1(record.content)
const use=decision?.decision==="human_approved"?at(record.content,"context","environment","aver","refs","approval"):null
const request=typeof use==="string"?uses.get(use):void 0
if (decision===null||request===void 0) continue
uses.delete(use)
if (request.digestVersion===1||!needsDescription(at(record.content,"outcome","result","action"))) continue
try {
const words=sha256Hex(await readDescription(request,digest=>reader.blob(digest)))
if ((isTrue(decision.instructionHash)?decision.instructionHash:EMPTY_SHA256)===words) continue
} catch (error) {
if (!(error instanceof BadInput)) throw error
if (error instanceof NotFound) {
tally.skip(CHECK$4,"words that were shown are not here",{matters:true})
continue
}
}
tally.fail(CHECK$4,"EVIDENCE_INVALID","its words are not those that were shown",placeOf(record))
}
}
function placeOf(record) {
const sequence=at(record.content,"sequence")
return sequence instanceof JsonNumber&&sequence.isInteger?place(record.chain,BigInt(sequence.text)):place(record.chain)
}
var ApprovalChecker=class {
tally=new Tally()
enrolled=new Map()
knownPasskeys=new Set()
cases=new Map()
requests=new Map()
used=new Map()
signatures=new Set()
uses=new Set()
wanted=1
newest=""
constructor(examination) {
const {rules,ledger,tenant}=examination
this.examination=examination
this.retired=rules.ring.retirementTimes(rules.ed25519)
this.roster=new Roster(rules.ed25519,ledger,tenant)
}
checkEnrolment(record) {
this.tally.countDone(CHECK$4)
let approver
try {
approver=this.roster.apply(record,this.retired)
} catch (error) {
if (!(error instanceof BadInput)) throw error
this.add(record,"failed","ROLE_POLICY_VIOLATION",`the roster was not changed by this: ${error.message}`)
return
}
if (approver===null) return
this.enrolled.set(approverKey(approver),approver)
if (approver.endorsers.some(endorser=>this.isKnown(endorser))) this.knownPasskeys.add(approverKey(approver))
const problem=this.roleProblem(record,approver)
if (problem!==null) this.add(record,"failed","ROLE_POLICY_VIOLATION",problem)
}
isKnown(approver) {
const {key}=approver
if (!(key instanceof PublicKey)) return this.knownPasskeys.has(approverKey(approver))
return this.examination.rules.ring.lookup(key.fingerprint).some(known=>known.equals(key))
}
unknownWords(approver) {
const words=`the ${approver.key instanceof PublicKey?"key":"passkey"} ${approver.key.fingerprint} of ${approver.identity} is not known here`
if (approver.key instanceof PublicKey) return words
const found=new Map([[approverKey(approver),approver]])
for (const name of found.keys()) for (const endorser of this.enrolled.get(name)?.endorsers??[]) found.set(approverKey(endorser),endorser)
return `${words}: give ${[...found.values()].flatMap(({key,identity})=>key instanceof PublicKey?[`the key ${key.fingerprint} of ${identity}`]:[]).join(", or ")||"the key of a person"}, who endorsed it`
}
roleProblem(record,{key,identity}) {
const {ring,roles}=this.examination.rules
const entry=findRingEntry(ring,key)
const role=(entry===null?roles.get(wholeKey(key)):ring.roleOf(entry.key))??null
const isOwn=role!==null&&role.identity===identity&&role.purpose==="approve"
if (role!==null&&!(isOwn&&key instanceof PublicKey)) return `${key.fingerprint} is the key of ${role}, and not one with which ${identity} approves`
return record.signed_by===wholeKey(key).slice(0,16)?`${key.fingerprint} sealed this record itself`:null
}
checkRecord(record) {
const kind=readKind(record.content)
if (!["approval.request","approval.decision","approval.use"].includes(kind)) return
try {
this.tally.countDone(CHECK$4)
if (kind==="approval.request") this.checkRequest(record)
else this.checkAnswer(record)
} finally {
if (record.signed_at>this.newest) this.newest=record.signed_at
}
}
checkRequest(record) {
const {ledger,tenant}=this.examination
const request=readRequest(record,ledger,tenant)
this.requests.set(request.id,request)
if (request.statement<this.wanted) {
this.add(record,"failed","STATE_VIOLATION","a request before it wants a later statement")
return
}
this.wanted=request.statement
this.cases.set(request.id,{request,votes:[],newest:request.opened,isUsed:false})
this.checkLeftOut(record,request)
if (!matchesAction(request)) this.add(record,"failed","EVIDENCE_INVALID","its action or diff is not the one it names")
else if (request.digestVersion===3&&blobDigest(request,"action")===null) {
const action=request.content.get("action")
if (!action.has("description")&&needsDescription(action)) this.add(record,"warning","EVIDENCE_INVALID","its digest leaves out its description")
}
if (request.anchor==="system") return
for (const approver of request.approvers.values()) {
if (this.roster.hasHad(approver)) continue
const words=`it counts the key ${approver.key.fingerprint} of ${approver.identity}, who was never enrolled with it`
this.add(record,"failed","ROLE_POLICY_VIOLATION",words)
}
}
checkAnswer(record) {
const {about,vote}=readVote(record)
const request=this.requests.get(about)
if (vote.word==="used"&&request!==void 0) this.used.set(record.id,request)
const found=this.cases.get(about)
if (found===void 0) {
this.add(record,"failed","STATE_VIOLATION","no request before it is the one it names")
return
}
if (isByPerson(vote)) this.checkVote(record,found,vote)
else if (vote.word==="used") this.checkUse(record,found,vote)
found.votes.push(vote)
if (vote.at>found.newest) found.newest=vote.at
}
checkUse(record,found,vote) {
const {request}=found
const {ed25519}=this.examination.rules
const before=computeState(request,found.votes,ed25519,vote.at,found.newest)
if (vote.use!==null&&request.digestVersion!==1) {
const problem=useProblem(request,before,vote.use)
if (problem!==null) this.add(record,"failed",CODES$1[problem[0]],problem[1])
else this.checkAccount(record,found,before.validApprovals)
return
}
const use=request.statement===1?`${request.digest}\n${request.expires}`:request.id
if (before.state==="used"||found.isUsed||this.uses.has(use)) {
this.add(record,"failed","REPLAY","the approval was used before")
return
}
found.isUsed=true
this.uses.add(use)
if (before.state!=="approved") this.add(record,"failed","EVIDENCE_INVALID",`it was used while it was ${before.state}: ${before.reason}`)
else if (vote.use!==null||request.digestVersion!==1) this.add(record,"failed","STATE_VIOLATION","the use has another form")
else this.checkAccount(record,found,before.validApprovals)
}
checkAccount(record,found,approvals,own="") {
const authority=record.content.get("authority")
const whole=authority.get("chain")
if (!Array.isArray(whole)||!authority.has("approver")) throw new Error("it lacks keys of its kind")
const chain=own?whole.slice(0,-1):whole
const signed=new Map()
for (const vote of approvals) if (vote.statement!==null) signed.set(canonicalContent(statementFields$1(vote.statement)),vote)
const basedOn=chain.map(statement=>signed.get(canonicalContent(statement))??null)
const people=own||basedOn.flatMap(vote=>vote===null?[]:[String(vote.approver)]).join(", ")
let words
if (at(record.content,"outcome","result","digest")!==found.request.digest) words="it names another action than its request"
else if (basedOn.includes(null)||!people) words="its statements are not those of the approvals before it"
else if (authority.get("approver")!==people) words=`it names others than ${people}, who signed`
else return
this.add(record,"failed","EVIDENCE_INVALID",words)
}
checkLeftOut(record,request) {
if (request.digestVersion===1||blobDigest(request,"beside")!==null) return
const [action,beside]=[request.content.get("action"),request.content.get("beside")]
const leftOut=isObject(beside)?beside.get("arguments"):void 0
if (!isObject(beside)||!isObject(leftOut)||!hasScopeOf(request,beside)) {
this.add(record,"failed","EVIDENCE_INVALID","it lacks what its digest leaves out, or is of another session")
return
}
const tool=isObject(action)?action.get("tool"):void 0
if (typeof tool!=="string") return
const known=listArguments(tools_default.descriptive,tool)
const more=[...leftOut.keys()].filter(name=>!known.includes(name))
if (more.length) this.add(record,"warning","EVIDENCE_INVALID",`its digest leaves out ${more.join(", ")}`)
}
checkVote(record,found,vote) {
const {request}=found
const {ed25519}=this.examination.rules
const before=computeState(request,found.votes,ed25519,request.opened)
const problem=voteProblem(request,vote,ed25519)??turnProblem(request,vote,before.validApprovals,before.floor)
if (problem!==null) {
this.add(record,"failed",CODES$1[problem[0]]??"STATE_VIOLATION",problem[1])
return
}
if (["denied","expired","closed","used"].includes(before.state)) this.add(record,"failed","STATE_VIOLATION",`the request had ended before: ${before.state}`)
const signed=vote.statement?.signatures[0]
const signature=signed?.passkey?.signature??signed?.ed25519??""
if (this.signatures.has(signature)) this.add(record,"failed","REPLAY","its statement is already in an earlier record")
this.signatures.add(signature)
this.checkAccount(record,found,before.validApprovals,String(vote.approver))
const approver=request.approvers.get(String(vote.approver))
const {key,identity}=approver
if (!this.isKnown(approver)) this.add(record,"not_checked","UNKNOWN_SIGNER",this.unknownWords(approver))
else {
const foreign=this.roleProblem(record,approver)
if (foreign!==null) this.add(record,"failed","ROLE_POLICY_VIOLATION",foreign)
}
const end=[this.roster.ended.get(key.fingerprint),this.retired.get(wholeKey(key))].filter(end=>end!==void 0&&end!=="").sort()[0]
if (end!==void 0&&(vote.at>end||this.newest>end)) this.add(record,"failed","KEY_RETIRED",`the key ${key.fingerprint} of ${identity} had ended at ${end}`)
if (vote.word!=="approve") return
if (request.statement===1) this.add(record,"warning","UNBOUND_STATEMENT",`${identity} signed no ledger, tenant or request`)
const enrolled=this.enrolled.get(approverKey(approver))
const custodies=[approver.custody,vote.custody,enrolled?.custody]
const isWeakPasskey=custodies.includes("passkey")&&(enrolled===void 0||!isIndependent(enrolled))
if (custodies.includes("file")||isWeakPasskey) {
const why=isWeakPasskey?"no key under a passphrase or in ssh-agent endorsed the passkey":"the key is kept in a plain file"
this.add(record,"warning","NOT_INDEPENDENT",`${identity}: the approver was not independent: ${why}`)
}
}
add(record,status,code,words) {
this.tally.add({check:CHECK$4,status,code,words:makePrintable(words),place:placeOf(record)})
}
};
// src/verify/key_history.ts
var NO_HISTORY={retired:new Map(),roles:new Map(),began:new Map()}
function rulesOf(history,rules) {
const {retired,roles,began}=history
return {...rules,retired,roles,recorded:new Set(roles.keys()),began}
}
function retirementsByTime(ring,ed25519) {
return new Map([...ring.retirementTimes(ed25519)].map(([key,retiredAt])=>[key,{retiredAt,limits:null}]))
}
var HistoryReader=class {
found=[]
constructor(ring,ed25519,identity) {
this.ring=ring
this.rules=plainRules(ring,ed25519)
this.whole=new ChainJudge({...this.rules,level:"content"},{identity:{...identity,name:KEYS_CHAIN}})
}
take(record) {
this.whole.judge(record)
const judge=new ChainJudge(this.rules,{chain:KEYS_CHAIN,start:null})
judge.judge(record)
if (!judge.tally.hasFailed()&&judge.signer!==null) {
const read=readKeyRecord(record,judge.signer,this.rules)
if (read!==null) this.found.push(read)
}
}
async finish(loadBlob) {
const {found,ring,rules}=this
const successors=new Map()
for (const {rotation} of found) if (rotation) successors.set(rotation.old.ed25519,rotation.new.ed25519)
const roles=new Map()
for (const each of [...found,...found]) if (recordsKey(each,ring,roles,successors)&&!roles.has(each.key.ed25519)) roles.set(each.key.ed25519,each.role)
const ends=[]
const began=new Map()
for (const each of found) {
const ended=endedKey(each,roles,successors)
const heads=ended===null?null:await readHeads(each.heads,loadBlob)
if (ended===null||heads===null) continue
ends.push({key:ended,sequence:each.sequence,heads,at:each.at})
if (each.rotation!==null&&!began.has(each.key.ed25519)) {
const own=new Map([...heads].filter(([chain])=>!chain.startsWith(`${IMPORT_DOMAIN}.`)))
began.set(each.key.ed25519,own)
}
}
const isIntact=!this.whole.tally.hasFailed()
return {retired:retirements(ring,rules.ed25519,ends),roles:isIntact?roles:new Map(),began}
}
}
function text$2(value) {
if (value===void 0) throw new BadInput("a key is missing")
return typeof value==="string"?value:value instanceof JsonNumber?value.text:String(value)
}
function readKeyRecord(record,signer,rules) {
try {
const content=record.content
const kind=readKind(content)
const result=at(content,"outcome","result")
if (!["key.create","key.rotate","key.retire"].includes(kind)) return null
if (!isObject(result)||!result.has("public_key_pq")) return null
const key=new PublicKey(result.get("public_key"),result.get("public_key_pq"))
const role=new KeyRole(text$2(result.get("identity")),text$2(result.get("purpose")),key.algorithm)
const known=rules.ring.entryOf(key)
if (known!==null&&(known.identity!==role.identity||known.purpose!==role.purpose)) return null
let rotation=null
if (kind==="key.rotate") {
rotation=readFirstRotation(content,rules)
if (rotation===null||rotation.new.ed25519!==key.ed25519||rotation.identity!==role.identity) return null
}
const when=rotation===null?text$2(readBlock(content)?.get("at")):rotation.at
return {kind,signer,key,role,sequence:content.get("sequence").value,at:when,rotation,heads:result.get("heads")}
} catch (error) {
if (error instanceof BadInput) return null
throw error
}
}
function readFirstRotation(content,rules) {
const statements=at(content,"authority","chain")
if (!Array.isArray(statements)||!statements.length) return null
return readRotation(readStatement(statements[0]),rules.ed25519)
}
function recordsKey(record,ring,roles,successors) {
if (record.kind==="key.retire") return false
if (follows(record.signer.ed25519,record.key.ed25519,successors)) return true
return (record.rotation!==null||ring.entryOf(record.key)!==null)&&isSealedForAnother(record,roles)
}
function endedKey(record,roles,successors) {
const signer=record.signer.ed25519
if (record.rotation!==null) return follows(signer,record.rotation.new.ed25519,successors)||isSealedForAnother(record,roles)?record.rotation.old.ed25519:null
if (record.kind!=="key.retire"||signer===record.key.ed25519) return null
const sealer=roles.get(signer)
if (sealer===void 0||!roles.has(record.key.ed25519)) return null
return sealer.identity==="ledger"||sealer.identity===record.role.identity?record.key.ed25519:null
}
function isSealedForAnother(record,roles) {
return roles.get(record.signer.ed25519)?.identity==="ledger"&&record.role.identity!=="ledger"
}
async function readHeads(value,loadBlob) {
try {
let heads=value
for (const {digest} of blobReferences(value)) heads=readJson(await loadBlob(digest))
if (!isObject(heads)) return null
const counts=new Map()
for (const [chain,head] of heads) {
if (!isObject(head)||!head.has("hash")) return null
const count=readInteger(head.get("count"))
if (count===null) return null
counts.set(chain,count)
}
return counts
} catch (error) {
if (error instanceof BadInput) return null
throw error
}
}
function readInteger(value) {
if (value instanceof JsonNumber) return toCount(BigInt(value.isInteger?value.text:Math.trunc(value.value)))
if (typeof value==="boolean") return Number(value)
if (typeof value!=="string"||!/^\s*[-+]?[0-9](?:_?[0-9]){0,4299}\s*$/.test(value)) return null
return toCount(BigInt(value.replace(/[+_]/g,"")))
}
function follows(signer,key,successors) {
const seen=new Set()
while (key!==signer) {
seen.add(key)
const next=successors.get(key)
if (next===void 0||seen.has(next)) return false
key=next
}
return true
}
function retirements(ring,ed25519,ends) {
const found=retirementsByTime(ring,ed25519)
for (const end of ends) {
const known=found.get(end.key)??{retiredAt:end.at,limits:null}
if (known.limits!==null) continue
found.set(end.key,{retiredAt:known.retiredAt,limits:new Map(end.heads).set(KEYS_CHAIN,end.sequence)})
}
return found
}
function isValidByItself(record,rules) {
const judge=new ChainJudge({...plainRules(rules.ring,rules.ed25519)},{start:null})
judge.judge(record)
return judge.tally.findings.every(({code})=>code==="UNKNOWN_SIGNER")&&judge.signer!==null&&judge.signer.fingerprint===record.signed_by
}
function readReplacement(record,rules) {
try {
if (record.kind!=="key.rotate") return null
const rotation=readFirstRotation(record.content,rules)
return rotation===null?null:[rotation.new.ed25519,rotation.old.ed25519]
} catch (error) {
if (error instanceof BadInput) return null
throw error
}
}
function reportUnrecorded(tally) {
const missing=new Map()
for (const [signer,where] of tally.unrecorded) {
const key=signer.slice(0,64)
if (!tally.vouched.has(signer)&&!missing.has(key)) missing.set(key,where)
}
for (const [key,where] of missing) {
const seat=[where.chain&&`chain ${where.chain}`,where.sequence!==null&&`sequence ${where.sequence}`]
const words=`no intact keys chain records that the key ${key.slice(0,16)} came into use before it sealed ${seat.filter(Boolean).join(", ")}`
tally.warn("keys","KEY_UNRECORDED",words,place())
}
tally.unrecorded=new Map()
}
// src/verify/sealed.ts
var SEAL_KEYS=["hash","signature","signature_pq","signed_at","signed_by"]
var SEAL_TEXT_MAX=16384
var Sealed=class {
chain=null
parsed=void 0
hasCanonicalForm=false
digest=void 0
constructor(canonical,seal,chain=null) {
this.canonical=canonical
this.hash=seal.hash
this.signature=seal.signature
this.signature_pq=seal.signature_pq
this.signed_at=seal.signed_at
this.signed_by=seal.signed_by
this.chain=chain
}
adoptHash(digest) {
this.digest??=digest
}
get computedHash() {
this.digest??=sha3Hex(encoder.encode(this.canonical))
return this.digest
}
get value() {
if (this.parsed===void 0) {
if (!this.canonical.isWellFormed()) throw new Unreadable("not UTF-8")
const {value,isCanonical}=readWithForm(this.canonical,canonicalNumber)
this.parsed=value
this.hasCanonicalForm=isCanonical
}
return this.parsed
}
get isCanonical() {
this.value
return this.hasCanonicalForm
}
get content() {
const value=this.value
if (!isObject(value)) throw new BadInput("the sealed bytes are not a JSON object")
return value
}
get kind() {
return readKind(this.content)
}
get id() {
const id=this.content.get("id")
return typeof id==="string"?id:String(id)
}
}
function sealedFromJson(data) {
const {parted,forms}=splitOffKeys(data,SEAL_KEYS)
const texts=forms()
const first=texts.next().value
const seal=readSeal(parted,key=>new BadInput(`${key} must be a string`))
const sealed=new Sealed(first,seal)
for (let found=sealed;;) {
if (found.computedHash===found.hash) return found
const next=texts.next()
if (next.done) return sealed
found=new Sealed(next.value,seal)
}
}
function readSeal(entry,wrongType) {
const seal={hash:"",signature:"",signature_pq:"",signed_at:"",signed_by:""}
for (const key of SEAL_KEYS) {
const value=entry.get(key)??""
if (typeof value!=="string") throw wrongType(key)
seal[key]=value
}
return seal
}
function checkSealFields(sealed) {
for (const key of SEAL_KEYS) {
const {length}=sealed[key]
if (length>SEAL_TEXT_MAX&&codePoints(sealed[key])>SEAL_TEXT_MAX||!isPrintable(sealed[key])) throw new Unreadable(`its ${key} cannot be part of a seal`)
}
return sealed
}
// src/verify/bytes.ts
var CHUNK=262144
async function* readChunks(source) {
for (let at=0; at<source.size; at+=CHUNK) {
const chunk=await source.read(at,Math.min(at+CHUNK,source.size))
if (chunk.length===0) return
yield chunk
}
}
async function readStart(source,limit) {
return source.read(0,Math.min(limit,source.size))
}
var MemorySource=class {
constructor(bytes) {
this.bytes=bytes
}
get size() {
return this.bytes.length
}
async read(start,end) {
return this.bytes.subarray(start,end)
}
}
var BLOCK$1=1048576
var BLOCKS_KEPT=4
var blocks=new Map()
var BlockSource=class {
async read(start,end) {
let block=blocks.get(this)
if (block===void 0||start<block.start||Math.min(end,this.size)>block.start+block.bytes.length) {
block={start,bytes:await this.load(start,Math.max(end,start+BLOCK$1))}
blocks.delete(this)
if (block.bytes.length<=BLOCK$1) blocks.set(this,block)
if (blocks.size>BLOCKS_KEPT) blocks.delete(blocks.keys().next().value)
}
return block.bytes.subarray(start-block.start,end-block.start)
}
}
var BlobSource=class extends BlockSource {
constructor(blob) {
super()
this.blob=blob
}
get size() {
return this.blob.size
}
async load(start,end) {
return new Uint8Array(await this.blob.slice(start,end).arrayBuffer())
}
}
var FileMap=class {
constructor(name,files) {
this.name=name
this.files=files
}
async list(inside) {
if (inside!==void 0&&this.files.has(inside)) return null
const prefix=inside===void 0?"":`${inside}/`
const names=new Set()
for (const path of this.files.keys()) if (path.startsWith(prefix)) names.add(path.slice(prefix.length).split("/",1)[0])
return [...names]
}
async open(...names) {
const found=this.files.get(names.join("/"))
if (found===void 0) throw new NotFound(`there is no ${names.join("/")}`)
return found
}
}
var LINE_FEED=10
var LineReader=class {
place=0
window=new Uint8Array()
start=0
constructor(source,place=0) {
this.source=source
this.place=place
}
async readLine(limit) {
let searched=0
for (;;) {
const left=this.window.length-this.start
const feed=this.window.indexOf(LINE_FEED,this.start+searched)
if (feed>=0&&feed-this.start<limit) return this.take(feed+1-this.start)
if (left>=limit) return this.take(limit)
searched=left
if (!await this.fill()) return left?this.take(left):null
}
}
async skipBlanks() {
let feeds=0
for (;;) {
while (this.start<this.window.length) {
const byte=this.window[this.start]
if (byte!==32&&byte!==9&&byte!==10&&byte!==13) return feeds
if (byte===LINE_FEED) feeds++
this.start++
this.place++
}
if (!await this.fill()) return feeds
}
}
async readRest(limit) {
while (this.window.length-this.start<limit&&await this.fill());
return this.take(Math.min(limit,this.window.length-this.start))
}
take(size) {
const taken=this.window.subarray(this.start,this.start+size)
this.start+=size
this.place+=size
return taken
}
async fill() {
const from=this.place+this.window.length-this.start
if (from>=this.source.size) return false
const more=await this.source.read(from,Math.min(from+Math.max(CHUNK,this.window.length-this.start),this.source.size))
if (more.length===0) return false
const kept=this.window.subarray(this.start)
const window=new Uint8Array(kept.length+more.length)
window.set(kept)
window.set(more,kept.length)
this.window=window
this.start=0
return true
}
}
function areSameBytes(one,other) {
let at=0
while (at<one.length&&one[at]===other[at]) at++
return at===one.length&&at===other.length
}
// src/verify/elements.ts
var WINDOW_CHARS=65536
var TextWindow=class {
text=""
at=0
isDone=false
decoder=new TextDecoder("utf-8",{fatal:true,ignoreBOM:true})
get wanted() {
return Math.min(Math.max(2*(this.text.length-this.at),WINDOW_CHARS),ELEMENT_MAX+WINDOW_CHARS)
}
add(chunk) {
let more
try {
more=chunk===null?this.decoder.decode():this.decoder.decode(chunk,{stream:true})
} catch {
throw new Unreadable("not UTF-8")
}
this.text=this.text.slice(this.at)+more
this.at=0
if (chunk===null) this.isDone=true
}
}
function* readArrayTexts(window) {
yield* expect(window,"[")
if ((yield* peek(window))==="]") {
window.at++
return
}
for (;;) {
yield yield* readValue(window)
if ((yield* peek(window))===",") window.at++
else {
yield* expect(window,"]")
return
}
}
}
function* readTopArrayTexts(window) {
yield* readArrayTexts(window)
yield* end(window)
}
function* readTopArray(window) {
for (const steps=readTopArrayTexts(window);;) {
const step=steps.next()
if (step.done) return
yield step.value===void 0?void 0:{text:step.value,value:parseBounded(step.value)}
}
}
function* readObjectWithArray(window,key) {
const others=new Map()
const seen=new Set()
let size=0
let tokens=0
yield* expect(window,"{")
if ((yield* peek(window))==="}") window.at++
else for (;;) {
const name=parseBounded(yield* readValue(window))
if (typeof name!=="string") throw new Unreadable("an object key is not a string")
if (seen.has(name)) throw new DuplicateKey(`the key ${JSON.stringify(name.slice(0,80))} occurs twice in one object`)
seen.add(name)
yield* expect(window,":")
if (name===key) for (const steps=readArrayTexts(window);;) {
const step=steps.next()
if (step.done) break
yield step.value===void 0?void 0:{text:step.value,value:parseBounded(step.value)}
}
else {
const text=yield* readValue(window)
size+=name.length+text.length
tokens+=1+countTokens(text)
if (size>16777216||tokens>1e6) throw new Unreadable(`the members beside '${key}' have more than ${ELEMENT_MAX} bytes or ${TOKENS_MAX} values`)
others.set(name,parseBounded(text))
}
if ((yield* peek(window))===",") window.at++
else {
yield* expect(window,"}")
break
}
}
if (!seen.has(key)) throw new Unreadable(`has no '${key}'`)
yield {others}
yield* end(window)
}
function* peek(window) {
for (;;) {
window.at=skipSpace(window.text,window.at)
if (window.at<window.text.length) return window.text[window.at]
if (window.isDone) return ""
yield void 0
}
}
function* expect(window,character) {
const found=yield* peek(window)
if (found!==character) throw new Unreadable(`expected '${character}', found '${found||"the end"}'`)
window.at++
}
function* end(window) {
if (yield* peek(window)) throw new Unreadable("something follows the end of the document")
}
function* readValue(window) {
if (!(yield* peek(window))) throw new Unreadable("the document ends early")
let found=findValueEnd(window.text,window.at)
while (found===null) {
if (byteLength(window.text.slice(window.at))>16777216) throw new Unreadable(`an element is larger than ${ELEMENT_MAX} bytes`)
if (window.isDone) throw new Unreadable("the document ends early")
yield void 0
found=findValueEnd(window.text,window.at)
}
const text=window.text.slice(window.at,found)
if (isTooLarge(text)) throw new Unreadable(`an element is larger than ${ELEMENT_MAX} bytes`)
checkTokenCount(text)
window.at=found
return text
}
async function* readBatches(source,read) {
const window=new TextWindow()
const steps=read(window)
const chunks=readChunks(source)
let items=[]
try {
for (;;) {
const step=steps.next()
if (step.done) break
if (step.value!==void 0) {
items.push(step.value)
continue
}
if (items.length) {
yield {items,error:null}
items=[]
}
for (const wanted=window.wanted; !window.isDone&&window.text.length-window.at<wanted;) {
const chunk=await chunks.next()
window.add(chunk.done?null:chunk.value)
}
}
} catch (error) {
if (!(error instanceof BadInput)) throw error
yield {items,error}
return
}
if (items.length) yield {items,error:null}
}
function readElements(source) {
return readBatches(source,readTopArray)
}
function readElementTexts(source) {
return readBatches(source,readTopArrayTexts)
}
function readMemberElements(source,key) {
return readBatches(source,window=>readObjectWithArray(window,key))
}
// src/verify/bundle/layout.ts
var INDEX="index.json"
var META="meta.json"
var HEAD$1="head.json"
var BLOBS="blobs"
var RESERVED_IDS=new Set(["head","index","meta"])
var SHORTEST_CHAIN=1200
var ABSENT_MAX=1e3
var UNKNOWN_KEPT=10
var CLAIM_TEXT_MAX=256
var INDEX_KEYS=new Set([...["generated_at","public_key","fingerprint","keys","pq_keys","chain_count","capsule_count"],...["meta","chains","ledger","tenant","part","blobs","unfinished","files"]])
var SUMMARY_KEYS=new Set([...["id","tool","title","length","head_hash","genesis_hash","origin"],...["all_hashes_ok","signed_by","started_at","ended_at","db_path"]])
var RECORD_KEYS=new Set([...SEAL_KEYS,"canonical"])
function claimedName({id,tool}) {
return tool&&id.startsWith(`${tool}-`)?`${tool}.${id.slice(tool.length+1)}`:id
}
function fileOf(claim) {
return `${claim.id}.json`
}
function checkFileName(name) {
if (!isFileName(name)) throw new Unreadable(`${show$1(name)} is not a name that a file may have here`)
return name
}
async function readIndex(directory) {
const data=readJson(await readStart(await directory.open(INDEX),ELEMENT_MAX+1))
const listed=isObject(data)?data.get("chains"):null
if (!isObject(data)||!Array.isArray(listed)) throw new Unreadable("an index is an object that lists chains")
const here=Math.min((await directory.list()).length,listed.length)
if (listed.length-here>ABSENT_MAX) throw new Unreadable(`it lists ${listed.length} chains, and ${here} files are here: the rest was not read`)
const chains=new Map()
const names=new Set()
listed.forEach((summary,at)=>{
const claim=readClaim(summary,`chains[${at}]`)
if (RESERVED_IDS.has(claim.id.toLowerCase())) throw new Unreadable(`a chain cannot have the id '${claim.id}'`)
if (chains.has(claim.id)) throw new Unreadable("two chains have the same id")
if (names.has(claimedName(claim))) throw new Unreadable("two chains have the same name")
chains.set(claim.id,claim)
names.add(claimedName(claim))
})
const shared=await directory.findSharedFiles?.(new Set([INDEX,META,HEAD$1,...[...chains.values()].map(fileOf)]))
if (shared) throw new Unreadable(`${shared[0]} and ${shared[1]} are two names of one file; each part of a bundle has a file of its own`)
const meta=data.get("meta")??null
const files=data.has("files")?data.get("files"):[]
if (meta!==null&&!isObject(meta)) throw new Unreadable("meta must be an object")
if (!Array.isArray(files)) throw new Unreadable("files must be a list")
const claimOfMeta=meta===null?null:readClaim(new Map([...meta,["id","meta"],["origin",null]]),"meta")
files.forEach(checkFileName)
return {chains:[...chains.values()],meta:claimOfMeta,chainCount:requireCount(data,"chain_count"),capsuleCount:requireCount(data,"capsule_count"),ledger:requireText(data,"ledger"),tenant:requireText(data,"tenant"),isPart:requireFlag(data,"part"),areBlobsLeftOut:data.get("blobs")===null,blobs:requireCount(data,"blobs"),publicKey:requireText(data,"public_key"),fingerprint:requireText(data,"fingerprint"),keys:requireTexts(data,"keys"),pqKeys:requireTexts(data,"pq_keys"),isUnfinished:requireFlag(data,"unfinished"),unknown:unknownKeys(data,INDEX_KEYS)}
}
function unknownKeys(data,known) {
return sortTexts([...data.keys()].filter(key=>!known.has(key))).slice(0,UNKNOWN_KEPT)
}
function readClaim(summary,where,{own=false}={}) {
if (!isObject(summary)) throw new Unreadable(`${where} must be an object`)
const id=summary.get("id")
if (!(own&&id==="")) {
checkFileName(id)
checkFileName(`${id}.json`)
}
const text=key=>requireText(summary,key,`${where}.`)
const plain=key=>{
const value=summary.get(key)??null
if (value!==null&&typeof value!=="string") throw new Unreadable(`${where}.${key} must be a text`)
return value
}
const claim={id,tool:text("tool")??"",length:requireCount(summary,"length",`${where}.`),headHash:text("head_hash"),genesisHash:text("genesis_hash"),origin:text("origin"),title:plain("title"),startedAt:plain("started_at"),endedAt:plain("ended_at"),dbPath:plain("db_path"),signedBy:null,allHashesOk:null,unknown:unknownKeys(summary,SUMMARY_KEYS)}
const signers=summary.get("signed_by")??null
if (signers!==null&&!(Array.isArray(signers)&&signers.every(name=>typeof name==="string"))) throw new Unreadable(`${where}.signed_by must be a list of texts`)
const ok=summary.get("all_hashes_ok")??null
if (ok!==null&&typeof ok!=="boolean") throw new Unreadable(`${where}.all_hashes_ok must be true or false`)
return {...claim,signedBy:signers,allHashesOk:ok}
}
function requireFlag(data,key) {
const value=data.has(key)?data.get(key):false
if (typeof value!=="boolean") throw new Unreadable(`${key} must be true or false`)
return value
}
function requireCount(data,key,where="") {
const value=data.get(key)??null
if (value===null) return null
if (!isInteger(value)||value.value<0) throw new Unreadable(`${where}${key} must be a count`)
return value.value+0
}
function requireText(data,key,where="") {
const value=data.get(key)??null
if (value===null) return null
if (typeof value!=="string"||!isPrintable(value)||codePoints(value)>CLAIM_TEXT_MAX) throw new Unreadable(`${where}${key} must be a short text`)
return value
}
function requireTexts(data,key) {
const value=data.get(key)??null
if (value===null) return null
if (!isObject(value)||![...value.values()].every(item=>typeof item==="string")) throw new Unreadable(`${key} must be an object of texts`)
return value
}
function isRecordSource(source) {
return "entries" in source
}
async function* readEntries(source,unknown) {
let number=-1
for await (const entries of source.entries()) yield entries.map(entry=>{
number++
try {
if (entry instanceof BadInput) return entry
const record=readBundleRecord(entry)
if (unknown!==null) noteUnknownMembers(entry,number,unknown)
return record
} catch (problem) {
if (!(problem instanceof BadInput)) throw problem
return problem
}
})
}
async function* readChainFile(source,unknown=null) {
if (isRecordSource(source)) {
yield* readEntries(source,unknown)
return
}
let number=-1
for await (const {items,error} of readMemberElements(source,"capsules")) {
const found=[]
let failure=error
for (const item of items) {
if ("others" in item) {
try {
found.push({claim:readClaim(new Map([["id",""],...item.others]),"the chain's summary",{own:true})})
} catch (problem) {
if (!(problem instanceof BadInput)) throw problem
failure=problem
break
}
continue
}
number++
try {
found.push(readBundleRecord(item.value))
} catch (problem) {
if (!(problem instanceof BadInput)) throw problem
found.push(problem)
continue
}
if (unknown!==null) noteUnknownMembers(item.value,number,unknown)
}
if (failure!==null) found.push(failure)
yield found
if (failure!==null) return
}
}
function noteUnknownMembers(entry,number,unknown) {
for (const key of entry.keys()) if (!RECORD_KEYS.has(key)) {
const others=sortTexts([...entry.keys()].filter(name=>!RECORD_KEYS.has(name)))
for (const name of others.slice(0,Math.max(0,UNKNOWN_KEPT-unknown.size))) if (!unknown.has(name)) unknown.set(name,number)
return
}
}
function readBundleRecord(entry) {
const canonical=isObject(entry)?entry.get("canonical"):null
if (!isObject(entry)||typeof canonical!=="string") throw new Unreadable("a capsule in a bundle is an object with its seal and `canonical`")
const seal=readSeal(entry,()=>new Unreadable("the parts of a seal are strings"))
if (!canonical.isWellFormed()) throw new Unreadable("`canonical` contains a lone surrogate, which has no bytes")
return checkSealFields(new Sealed(canonical,seal))
}
var TITLE_SCAN_MAX=4096
var SIGNERS_MAX=1e3
var ChainFacts=class {
count=0
genesisHash=null
headHash=null
startedAt=null
endedAt=null
title=""
rawTitle=""
signers=new Set()
addRecord(record,content) {
if (this.count===0) {
this.genesisHash=record.hash
this.startedAt=record.signed_at
}
this.count++
this.headHash=record.hash
this.endedAt=record.signed_at
if (record.signed_by&&this.signers.size<=1e3) this.signers.add(record.signed_by)
if (this.rawTitle===""&&content!==null) {
const request=at(content,"trigger","request")
this.rawTitle=typeof request==="string"?firstLine(strip(cutText(request,TITLE_SCAN_MAX))):""
this.title=cleanTitle(this.rawTitle,90)
}
}
addUnreadable() {
this.count++
this.headHash=null
}
};
// src/verify/bundle/index_check.ts
var CHECK$3="index"
var NAME_SHOWN=80
function checkChainClaim(claim,facts,source,tally,chain) {
const {count}=facts
const who=source.name
if (claim.length!==null&&claim.length!==count) {
const code=claim.length>count?"TRUNCATED":"ROLLBACK"
tally.fail(CHECK$3,code,`${who} claims ${claim.length} records; ${count} are here`,place(chain,Math.min(claim.length,count)))
} else if (count&&claim.headHash!==null&&claim.headHash!==facts.headHash) tally.fail(CHECK$3,"ROLLBACK",`${who} claims another last record`,place(chain,count-1))
if (count&&claim.genesisHash!==null&&claim.genesisHash!==facts.genesisHash) tally.fail(CHECK$3,"CHAIN_IDENTITY",`${who} claims another first record`,place(chain,0))
}
function checkShownClaims(claim,facts,source,tally,where,allHashesOk,name) {
if (source.isAvers) warnOfKeys(claim.unknown,source.name,tally,where)
if (facts.count===0) return
const fail=(what,claimed)=>{
tally.fail(CHECK$3,"INDEX_MISMATCH",`${source.name} claims ${what} that the records do not have: ${show$1(claimed)}`,where)
}
if (claim.allHashesOk!==null&&allHashesOk!==null&&claim.allHashesOk!==allHashesOk) fail("an all_hashes_ok",claim.allHashesOk)
if (claim.startedAt!==null&&claim.startedAt!==facts.startedAt) fail("a time of its first record",claim.startedAt)
if (claim.endedAt!==null&&claim.endedAt!==facts.endedAt) fail("a time of its last record",claim.endedAt)
if (facts.signers.size<=1e3) {
const actual=sortTexts(facts.signers)
const isSame=claim.signedBy?.length===actual.length&&actual.every((one,at)=>claim.signedBy?.[at]===one)
if (claim.signedBy!==null&&!isSame) fail("signers",claim.signedBy)
} else tally.skip(CHECK$3,`a chain has more than ${SIGNERS_MAX} signers, which were not compared`,{matters:true})
if (source.isAvers&&name) {
if (claim.tool&&claim.tool!==splitChainName(name)[0]) fail("a tool",claim.tool)
if (claim.title!==null&&claim.title!==(facts.title||name)) fail("a title",claim.title)
if (claim.dbPath!==null&&claim.dbPath!=="") fail("a path",claim.dbPath)
}
if (!source.isAvers&&![null,facts.title,cutText(facts.rawTitle,90),name].includes(claim.title)) {
const words=`${source.name} claims a title that the first request does not have: ${show$1(claim.title)}`
tally.warn(CHECK$3,"INDEX_MISMATCH",words,where)
}
}
function checkOriginClaim(claim,origin,source,tally,where) {
if (claim.origin===null||claim.origin===origin) return
tally.fail(CHECK$3,"INDEX_MISMATCH",`${source.name} claims an origin that the records do not have: ${show$1(claim.origin)}`,where)
}
function warnOfKeys(unknown,who,tally,where) {
if (!unknown.length) return
const listed=unknown.map(key=>show$1(key)).join(", ")
tally.warn(CHECK$3,"INDEX_MISMATCH",`${who} has keys that Aver does not know, and which were not compared: ${listed}`,where)
}
function warnOfMembers(unknown,tally,chain,source=null) {
if (!unknown.size) return
const words=`records have members beside \`canonical\` that Aver does not know, and that nobody signed: ${[...unknown.keys()].map(key=>show$1(key)).join(", ")}`
tally.warn(CHECK$3,"INDEX_MISMATCH",words,place(chain,Math.min(...unknown.values()),source))
}
function checkKeyClaims(index,head,signers,ring,recorded,tally) {
const fail=words=>tally.fail(CHECK$3,"INDEX_MISMATCH",words,place(null,null,INDEX))
warnOfKeys(index.unknown,"the index",tally,place(null,null,INDEX))
const claimed=new Map(index.keys??[])
if (index.publicKey&&index.fingerprint!==null) {
if (!claimed.has(index.fingerprint)) claimed.set(index.fingerprint,index.publicKey)
if (claimed.get(index.fingerprint)!==index.publicKey) fail("public_key and keys have two keys of one fingerprint")
}
if (Boolean(index.publicKey)!==Boolean(index.fingerprint)) fail("public_key and fingerprint are not those of one key")
for (const [fingerprint,key] of claimed) {
const known=new Set(ring.lookup(fingerprint).map(one=>one.ed25519))
const record=recorded.get(fingerprint)
if (record!==void 0) known.add(record.publicKey)
if (cutText(key,16)!==fingerprint||known.size&&!known.has(key)) fail(`its key of ${show$1(fingerprint)} is another than that signer's`)
else if (!signers.has(fingerprint)&&fingerprint!==index.fingerprint) fail(`it lists the key ${show$1(fingerprint)}, which signed nothing here`)
}
for (const [fingerprint,key] of index.pqKeys??[]) {
const known=new Set(ring.lookup(fingerprint).map(one=>one.mlDsa).filter(Boolean))
const record=recorded.get(fingerprint)
if (record!==void 0) known.add(record.publicKeyPq)
if (!claimed.has(fingerprint)||known.size&&!known.has(key)) fail(`its ML-DSA-65 key of ${show$1(fingerprint)} is another than that signer's`)
}
const signersOfHead=head===null?[]:head.statement.signatures.map(one=>one.by)
if (head!==null&&index.fingerprint!==null&&!signersOfHead.includes(index.fingerprint)) fail(`it claims that the ledger's key is ${show$1(index.fingerprint)}; another signed ${HEAD$1}`)
if (head!==null&&index.isPart!==head.isPart) fail(`it claims ${index.isPart?"a part":"all"} of the ledger, and ${HEAD$1} states otherwise`)
}
async function checkUnlistedFiles(directory,index,blobs,known,tally) {
const listed=new Set([INDEX,HEAD$1,...index.chains.map(fileOf),...known])
if (index.meta!==null) listed.add(META)
const warn=(name,why)=>{
const shown=isPrintable(name)&&codePoints(name)<=NAME_SHOWN?name:show$1(name,NAME_SHOWN).slice(1)
tally.warn(CHECK$3,"UNLISTED_FILE",`${shown}: ${why}`,place(null,null,shown))
}
for (const name of await directory.list()) {
const inside=name==="blobs"?await directory.list(BLOBS):null
if (inside!==null) {
for (const blob of inside) if (!blobs.has(blob)) warn(`${BLOBS}/${blob}`,"no record refers to it")
} else if (!listed.has(name)) warn(name,"the index does not list it, and it was not verified")
}
}
// src/verify/bundle/chain_file.ts
var UNREADABLE_CODES=new Set(["SCHEMA_INVALID","DUPLICATE_KEY"])
var JudgedChain=class {
facts=new ChainFacts()
atWanted=null
ownClaim=null
refersToBlobs=false
constructor(wanted=-1) {
this.wanted=wanted
}
take(item,judge) {
if (item instanceof Sealed) {
if (this.facts.count===this.wanted) this.atWanted=item.hash
this.refersToBlobs||=item.canonical.includes(BLOB_REFERENCE)
const content=judge.judge(item)
this.facts.addRecord(item,content)
return content
}
if (item instanceof BadInput) {
judge.unreadable(item)
this.facts.addUnreadable()
} else this.ownClaim=item.claim
return null
}
checkClaim(claim,source,judge,chain,name,shown) {
const codes=new Set([...judge.tally.counts.values()].map(counted=>counted.code))
const hashesOk=judge.tally.done.has("content")&&![...UNREADABLE_CODES].some(code=>codes.has(code))?!codes.has("HASH_MISMATCH"):null
checkChainClaim(claim,this.facts,source,judge.tally,chain)
checkShownClaims(claim,this.facts,source,shown,place(chain),hashesOk,claim.id||name)
}
}
async function peekChainIdentity(source,unknown=null) {
const batches=readChainFile(source,unknown)
let first=null
while (first===null||first.length===0) {
const step=await batches.next()
if (step.done) break
first=step.value
}
const item=first?.[0]
const rest=async function* () {
if (first!==null) yield first
yield* batches
}
return {named:readChainIdentity(item instanceof Sealed?item:null),batches:rest()}
}
var NO_OWNER={ledger:null,tenant:null}
async function readOwner(directory,index) {
const own=index.chains.filter(claim=>claim.origin===null||RESERVED_CHAINS.has(claim.id)).map(fileOf)
const files=index.meta===null?own:[META,...own]
for (const name of files.slice(0,UNREADABLE_MAX)) try {
const {named}=await peekChainIdentity(await directory.open(name))
const [ledger,tenant]=[named?.get("ledger"),named?.get("tenant")]
if (typeof ledger==="string"&&typeof tenant==="string") return {ledger,tenant}
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
return NO_OWNER
}
async function judgeChainFile(name,file,options) {
const retired=retirementsByTime(options.ring,options.ed25519)
const rules=plainRules(options.ring,options.ed25519,{retired,requirePq:options.requirePq??false,crew:options.crew??null})
const judge=new ChainJudge(rules,{source:name})
const seen=new JudgedChain()
const unknown=new Map()
const shown=new Tally()
const meter=new ProgressMeter(options,file.size)
const {named,batches}=await peekChainIdentity(file,unknown)
read:for await (const items of prepareBatches(rules,batches,found=>found.filter(item=>item instanceof Sealed))) {
const records=items.filter(item=>item instanceof Sealed)
for (const item of items) {
if (judge.stopsReading()) break read
seen.take(item,judge)
}
meter.add(items.length,records.reduce((sum,record)=>sum+record.canonical.length,0))
}
const tally=judge.finish()
tally.chains=Number(seen.facts.count>0)
tally.countDone("index",Number(seen.ownClaim!==null&&seen.facts.count>0))
const ownName=named?.has("name")?pythonText(named.get("name")):""
if (seen.ownClaim!==null) {
seen.checkClaim(seen.ownClaim,{name:"its summary",isAvers:named!==null},judge,null,ownName,shown)
checkName(seen.ownClaim,named,tally,name)
}
warnOfMembers(unknown,shown,null,name)
tally.merge(shown)
tally.skip("meta","only one chain was verified: it may have been cut at its end",{matters:false})
skipExaminers(domainOf(ownName),"only one chain was verified",tally)
if (seen.refersToBlobs) tally.skip("blobs","only one chain was verified",{matters:false})
return conclude(`chain in ${name}`,tally,"signature",[...CHECKS,"index"])
}
function checkName(claim,named,tally,source) {
if (named===null) {
tally.skip("identity","made by other software, which does not name its chain",{matters:false})
return
}
if (!claim.id) {
tally.skip("identity","the file does not say which chain it is",{matters:false})
return
}
tally.countDone("identity")
const madeAs=claim.origin||claim.id
if (named.get("name")!==madeAs) tally.fail("identity","CHAIN_IDENTITY",`the file calls it '${madeAs}', its first record another name`,place(null,0,source))
else if (madeAs!==claim.id) tally.skip("identity",`that '${madeAs}' was imported as '${claim.id}' rests on the file's summary alone`,{matters:true})
}
// src/verify/joins.ts
var PURPOSE="protocol-join"
var OPENING="protocol.session_initialized"
var JOINING="protocol.participant_joined"
var OPERATOR="operator"
var FIELDS={ledger:/^[!-~]{1,200}$/,tenant:/^[!-~]{1,200}$/,chain:/^[!-~]{1,200}$/,task_sha256:/^[0-9a-f]{64}$/,profile:/^(?:strict|default|lenient)$/,role:/^(?:planner|executor|critic|auditor|operator)$/,agent:/^(?:operator|agent:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63})$/}
async function noteJoins(examination,tally) {
for (const {name,origin} of selectChains(examination,"protocol")) {
if (![...tally.unrecorded.keys()].some(signer=>signer.endsWith(` ${name}`))) continue
const joined=new JoinedKeys(examination,origin)
for await (const record of examination.reader.read(origin)) joined.take(record)
for (const key of joined.keys) tally.vouched.add(unrecordedKey(key,name))
}
}
var JoinedKeys=class {
keys=new Set()
operator=null
constructor(examination,chain) {
this.examination=examination
this.place=[examination.ledger,examination.tenant,chain]
}
take(record) {
const {rules}=this.examination
const kind=readKind(record.content)
if (kind!==OPENING&&kind!==JOINING) return
const given=at(record.content,"authority","chain")
const statements=(Array.isArray(given)?given:[]).flatMap(one=>read(()=>[readStatement(one)])??[])
const joins=statements.flatMap(one=>read(()=>[this.readJoin(one)])??[])
const sealer=rules.ring.lookup(record.signed_by).find(key=>key.fingerprint===record.signed_by)
if (sealer===void 0) return
const sequence=record.content.get("sequence")
if (kind===OPENING&&sequence instanceof JsonNumber&&sequence.text==="0") {
if (roleOf(rules,sealer)?.mayAttest??true) this.operator=sealer
} else if (kind===JOINING&&joins.some(({role,key})=>role===OPERATOR&&key.equals(sealer))) {
if (this.operator!==null&&this.leads(statements,this.operator,sealer)) this.operator=sealer
}
if (this.operator===null||!sealer.equals(this.operator)) return
for (const {role,key} of joins) if (role!==OPERATOR) this.keys.add(key.ed25519)
}
leads(statements,from,to) {
for (const statement of statements.filter(({purpose})=>purpose==="rotation")) {
const rotation=readRotation(statement,this.examination.rules.ed25519)
if (rotation===null||!rotation.old.equals(from)) return false
from=rotation.new
}
return from.equals(to)
}
readJoin(statement) {
if (statement.purpose!==PURPOSE) throw new BadInput("it is no join")
const content=checkObject(statement.content,PURPOSE,[...Object.keys(FIELDS),"v","public_key","public_key_pq","at"])
checkVersion(content.get("v"),PURPOSE)
for (const [name,pattern] of Object.entries(FIELDS)) textField(content.get(name),name,pattern)
timeField(content.get("at"),"at")
const key=new PublicKey(content.get("public_key"),content.get("public_key_pq"))
const results=checkStatement(statement,new Ring([key]),this.examination.rules.ed25519)
if (results.length!==1||results[0]?.outcome!=="valid") throw new BadInput("it is not signed by its key alone")
if (["ledger","tenant","chain"].some((name,at)=>content.get(name)!==this.place[at])) throw new BadInput("it is for another trace")
return {role:content.get("role"),key}
}
}
function read(reader) {
try {
return reader()
} catch (error) {
if (error instanceof BadInput) return null
throw error
}
}
// src/verify/bundle/blobs.ts
var BLOBS_KEPT=1e5
var BLOB_READ_MAX=67108864
var OTHER_BYTES=-1
var OTHER_SIZE=-2
async function readBundleBlob(directory,digest) {
const file=await directory.open(BLOBS,digest)
if (file.size>BLOB_READ_MAX) throw new NotFound(`the blob ${digest} is larger than ${BLOB_READ_MAX} bytes, and was not read`)
const data=await file.read(0,file.size)
if (sha256Hex(data)!==digest) throw new BadInput(`the blob stored as ${digest} has other bytes`)
return data
}
var BundleBlobs=class {
sizes=new Map()
constructor(directory,areLeftOut,meter) {
this.directory=directory
this.areLeftOut=areLeftOut
this.meter=meter
}
get present() {
return [...this.sizes].flatMap(([digest,size])=>size===null?[]:[digest])
}
async check(content,chain,sequence,tally) {
for (const {digest,size} of blobReferences(content)) {
if (this.areLeftOut) {
tally.skip("blobs","the bundle was made without its blobs",{matters:true})
return
}
tally.countDone("blobs")
let actual=this.sizes.get(digest)
if (actual===void 0||actual===OTHER_SIZE) actual=await this.measure(digest,size)
if (this.sizes.size<BLOBS_KEPT) this.sizes.set(digest,actual)
if (actual===null) tally.fail("blobs","ARTIFACT_MISSING",`the blob ${digest} is not here`,place(chain,sequence))
else if (String(actual)!==size) tally.fail("blobs","ARTIFACT_HASH_MISMATCH",`the blob stored as ${digest} has other bytes`,place(chain,sequence))
}
}
async measure(digest,expected) {
try {
const file=await this.directory.open(BLOBS,digest)
if (String(file.size)!==expected) return OTHER_SIZE
const hash=startSha256()
for await (const chunk of readChunks(file)) {
hash.update(chunk)
this.meter.add(0,chunk.length)
}
return hash.hex()===digest?file.size:OTHER_BYTES
} catch (error) {
if (error instanceof BadInput) return null
throw error
}
}
checkCount(claimed,tally) {
if (this.sizes.size>=BLOBS_KEPT) {
tally.skip("index",`more than ${BLOBS_KEPT} blobs were not counted`,{matters:true})
return false
}
const here=this.present.length
if (claimed!==null&&claimed!==here) {
const words=`the index counts ${claimed} blobs; records refer to ${here} that are here`
tally.fail("index","INDEX_MISMATCH",words,place(null,null,INDEX))
}
return true
}
};
// src/verify/documents.ts
var NotExact=class extends BadInput {
get code() {
return "NOT_CANONICAL"
}
}
function readExactly(raw,where,read,...forms) {
const found=read(readJson(raw))
if (!forms.some(form=>areSameBytes(raw,encoder.encode(form(found))))) throw new NotExact(`${where} is not written, byte for byte, as Aver writes it: it was changed on its way`)
return found
}
function orderKeys(value,names) {
const found=new Map()
for (const name of names) if (value.has(name)) found.set(name,value.get(name))
return found
}
function dumpDocument(value) {
return `${indent(value,"\n",sortedKeys,scalar)}\n`
}
function dumpAsItStands(value) {
return `${indent(value,"\n",object=>[...object.keys()],compactJson)}\n`
}
function scalar(value) {
if (typeof value==="string") return asciiString(value)
return value instanceof JsonNumber?canonicalNumber(value):String(value)
}
function indent(value,line,keysOf,write) {
const inner=`${line}  `
const join=(items,[open,close])=>items.length?open+inner+items.join(`,${inner}`)+line+close:`${open}${close}`
const nested=item=>indent(item,inner,keysOf,write)
if (isObject(value)) return join(keysOf(value).map(key=>`${write(key)}: ${nested(value.get(key))}`),"{}")
return Array.isArray(value)?join(value.map(nested),"[]"):write(value)
}
function dumpSpaced(value) {
if (isObject(value)) return `{${sortedKeys(value).map(key=>`${asciiString(key)}: ${dumpSpaced(value.get(key))}`).join(", ")}}`
if (Array.isArray(value)) return `[${value.map(dumpSpaced).join(", ")}]`
return scalar(value)
}
// src/verify/bundle/head.ts
var CHECK$2="head"
var RECORDED_MAX=1e4
var WHERE=place(null,null,HEAD$1)
function noteRecordedKey(record,found) {
if (!["key.create","key.rotate"].includes(record.kind)) return
const [key,pq,fingerprint]=["public_key","public_key_pq","fingerprint"].map(name=>at(record.content,"outcome","result",name))
if (typeof key!=="string"||typeof pq!=="string"||typeof fingerprint!=="string") return
if (found.size<RECORDED_MAX&&!found.has(fingerprint)) found.set(fingerprint,{publicKey:key,publicKeyPq:pq})
}
function readCheckpoint(statement,where) {
const {content}=statement
if (statement.purpose!=="checkpoint"||!equalJson(content.get("v"),new JsonNumber("1"))) throw new BadInput(`${where} is a statement, but not a checkpoint`)
const [heads,when,since=null]=["heads","at","since"].map(name=>content.get(name))
if (!isObject(heads)||typeof when!=="string"||!(since===null||typeof since==="string")) throw new BadInput(`${where} does not list heads and its time`)
const [ledger,tenant]=["ledger","tenant"].map(name=>content.get(name))
if (typeof ledger!=="string"||typeof tenant!=="string") throw new BadInput(`${where} does not name a ledger and a tenant`)
return {statement,at:when,ledger,tenant,heads:[...heads].map(([chain,head])=>{
if (!isObject(head)||head.size!==2||!head.has("count")||!head.has("hash")) throw new BadInput(`${where}: its head of ${show$1(chain)} is not valid`)
return readHead(new Map([["ledger",ledger],["tenant",tenant],["chain",chain],...head]))
}),isPart:content.has("part")&&content.get("part")!==false}
}
async function readBundleHead(directory) {
let raw
try {
raw=await readStart(await directory.open(HEAD$1),ELEMENT_MAX+1)
} catch (error) {
if (error instanceof NotFound) return null
throw error
}
return readExactly(raw,HEAD$1,readContent$1,({statement})=>{
const content=orderKeys(statement.content,["v","ledger","tenant","at","heads","part"])
content.set("heads",orderHeads(content.get("heads")))
return dumpAsItStands(statementFields$1({...statement,content}))
})
}
function orderHeads(heads,names=sortedKeys(heads)) {
const ordered=orderKeys(heads,names)
for (const [name,head] of ordered) ordered.set(name,orderKeys(head,["count","hash"]))
return ordered
}
function readContent$1(data) {
const statement=readStatement(data,HEAD$1)
const found=readCheckpoint(statement,HEAD$1)
const keys=["v","ledger","tenant","part","heads","at"]
const {content}=statement
if (content.size!==keys.length||!keys.every(key=>content.has(key))||typeof content.get("part")!=="boolean") throw new BadInput(`${HEAD$1} does not state exactly ${keys.join(", ")}`)
return found
}
function checkBundleHead(head,heads,tally,of,rules,history) {
tally.countDone(CHECK$2)
if (head.ledger!==of.ledger||head.tenant!==of.tenant) {
tally.fail(CHECK$2,"CHAIN_IDENTITY",`${HEAD$1} is of ledger ${show$1(head.ledger)}; this is another`,WHERE)
return
}
if (!checkSigners(head,rules,tally,history,{check:CHECK$2,name:"head.json"})) return
const listed=new Map(head.heads.map(one=>[one.chain,one]))
for (const [chain,stated] of listed) {
const actual=heads.get(chain)??null
if (actual!==null&&actual.count>stated.count) {
const words=`${HEAD$1} states ${stated.count} records of this chain; ${actual.count} are here`
tally.fail(CHECK$2,"HEAD_MISMATCH",words,place(chain,stated.count),{stated:{...stated},actual:{...actual}})
} else checkHead(stated,actual,actual?.hash??null,tally,CHECK$2,HEAD$1)
}
for (const chain of heads.keys()) if (!listed.has(chain)) tally.fail(CHECK$2,"HEAD_MISMATCH",`${HEAD$1} does not list this chain: it was added after the export`,place(chain))
const which=head.isPart?"a part of the ledger":"the whole ledger"
tally.notes.set(CHECK$2,`${listed.size} chains, ${which}, as signed at ${head.at}`)
}
function checkSigners(stated,rules,tally,history,named) {
if (!checkSignatures(stated,rules,tally,history,named)) return false
const {check,name}=named
const where=place(null,null,name)
for (const {key} of checkStatement(stated.statement,rules.ring,rules.ed25519)) {
if (key===null) continue
if (!history.roles.has(key.ed25519)) {
const words=`${name} was signed by ${key.fingerprint}, which the keys chain of the bundle does not record`
tally.warn(check,"UNKNOWN_SIGNER",words,where)
}
const limits=history.retired.get(key.ed25519)?.limits??null
if (limits!==null&&[...stated.heads].some(({chain,count})=>count>(limits.get(chain)??0))) {
const words=`${name} was signed by ${key.fingerprint}, and has records from after that key was retired`
tally.fail(check,"KEY_RETIRED",words,where)
}
}
return true
}
function checkSignatures({statement,at:madeAt},given,tally,history,{check,name}) {
const where=place(null,null,name)
const results=checkStatement(statement,given.ring,given.ed25519)
const fail=(code,words)=>{
tally.fail(check,code,words,where)
return false
}
if (!results.length) return fail("SIG_MISSING",`${name} is not signed`)
const rules=rulesOf(history,given)
for (const {by,key,outcome} of results) {
if (outcome==="invalid") return fail("SIG_INVALID",`the signature of ${name} was not made by ${by}`)
if (key===null) {
const words=`${name} was signed by ${by}, whose key is not known here`
tally.add({check,status:"not_checked",code:"UNKNOWN_SIGNER",words,place:where})
continue
}
const role=roleOf(rules,key)
if (role!==null&&!role.mayAttest) return fail("KEY_MISMATCH",`${name} was signed by ${by}, a key of ${role}; only the ledger's key may`)
const retiredAt=rules.retired.get(key.ed25519)?.retiredAt??null
if (retiredAt!==null&&madeAt>retiredAt) return fail("KEY_RETIRED",`${name} says it was made at ${madeAt}; ${by}, who signed it, was retired at ${retiredAt}`)
}
return true
}
var DROP_KIND="chain.drop"
var OLD_IMPORT="imported"
function readDigits(chain) {
return /^import\.([0-9a-f]{16})\./.exec(chain)?.[1]??null
}
var ImportHistory=class {
imported=new Map()
constructor(ring,replaced) {
this.ring=ring
this.replaced=replaced
}
add(record) {
const dropped=new Map()
const {content}=record
const result=at(content,"outcome","result")
if (!isObject(result)) return dropped
const kind=readKind(content)
if (kind==="chain.import"&&result.get("kind")==="chain_import") {
const [chain,origin,count,hash]=["chain","origin","capsule_count","head_hash"].map(name=>result.get(name))
const number=readInteger(count)
if (chain===void 0||origin===void 0||hash===void 0||number===null) return dropped
this.imported.set(text$1(chain),{origin:text$1(origin),count:number,hash:text$1(hash),signedBy:record.signed_by})
} else if (kind==="chain.drop"&&result.get("kind")==="chain_drop") {
const chains=result.get("chains")
if (!isObject(chains)) return dropped
for (const [name,head] of chains) {
const known=this.imported.get(name)
if (known===void 0) continue
if (!isObject(head)||!head.has("count")||!head.has("hash")) return new Map()
if (equalJson(head.get("count"),new JsonNumber(String(known.count)))&&head.get("hash")===known.hash&&this.mayDrop(record.signed_by,known.signedBy)) dropped.set(name,{count:known.count,hash:known.hash})
}
}
for (const name of dropped.keys()) this.imported.delete(name)
return dropped
}
mayDrop(key,importer) {
const [dropping,importing]=[this.ring.lookup(key),this.ring.lookup(importer).map(one=>one.ed25519)]
return !dropping.length||!importing.length||dropping.some(one=>this.follows(one.ed25519,importing))
}
follows(key,first) {
const seen=new Set()
for (let at=key; at!==void 0&&!seen.has(at); at=this.replaced.get(at)) {
if (first.includes(at)) return true
seen.add(at)
}
return false
}
}
function text$1(value) {
return typeof value==="string"?value:value instanceof JsonNumber?value.text:String(value)
}
function forgetDropped(latest,dropped) {
for (const [chain,{count,hash}] of dropped) {
const head=latest.get(chain)
if (head!==void 0&&head.count===count&&head.hash===hash) latest.delete(chain)
}
}
function collectHeads(content,latest,ledger,tenant) {
try {
for (const [chain,count,hash] of listHeads(at(content,"outcome","result"))) {
const data=new Map([["ledger",ledger],["tenant",tenant]])
for (const [key,value] of [["chain",chain],["count",count],["hash",hash]]) {
if (value===void 0) return
data.set(key,value)
}
latest.set(chain,readHead(data))
}
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
}
function* listHeads(result) {
if (!isObject(result)) return
const kind=result.get("kind")
if (kind==="conversation_seal") {
const [tool,session]=[result.get("tool"),result.get("session_id")]
if (typeof tool!=="string"||typeof session!=="string") return
yield [tool===session&&RESERVED_CHAINS.has(tool)?tool:`${tool}.${session}`,result.get("capsule_count"),result.get("head_hash")]
} else if (kind==="chain_import") yield [result.get("chain"),result.get("capsule_count"),result.get("head_hash")]
else if (kind==="checkpoint") {
const heads=result.get("heads")
if (!isObject(heads)) return
for (const [chain,head] of heads) {
if (!isObject(head)) return
yield [chain,head.get("count"),head.get("hash")]
}
}
}
function findExternalChain(content) {
const result=at(content,"outcome","result")
if (!isObject(result)) return null
const [path,tool,session]=["db","tool","session_id"].map(name=>result.get(name))
if (typeof path!=="string"||typeof tool!=="string"||typeof session!=="string") return null
const parts=path.split("/").filter(part=>part!==""&&part!==".")
const last=parts.at(-1)??""
const dot=last.lastIndexOf(".")
const stem=dot>0&&dot<last.length-1?last.slice(0,dot):last
return (parts.at(-2)??"")===tool&&stem===session?null:`${tool}.${session}`
}
// src/verify/bundle/meta.ts
var HEADS_MAX$1=1e6
var MetaMemory=class {
heads=new Map()
elsewhere=new Set()
made=new Set()
compared=new Set()
doubtfulDrops=0
grown=0
outside=0
constructor(imports) {
this.imports=imports
}
take(record,content,owner,rules) {
if (this.heads.size>=HEADS_MAX$1) return
this.noteClaim(content)
collectHeads(content,this.heads,owner.ledger??"",owner.tenant??"")
const external=findExternalChain(content)
if (external!==null&&this.heads.has(external)) this.elsewhere.add(external)
this.noteImport(record,content,rules)
}
compare(name,remembered,actual,atHead,tally) {
if (remembered===void 0) {
this.outside+=Number(!RESERVED_CHAINS.has(actual.chain))
return
}
this.compared.add(name)
this.grown+=Number(checkHead({...remembered,chain:actual.chain},actual,atHead,tally,"meta","the meta chain"))
}
noteClaim(content) {
if (readKind(content)!=="chain.import") return
const claimed=new Map()
collectHeads(content,claimed,"","")
for (const name of claimed.keys()) if (this.heads.has(name)) this.made.add(name)
}
noteImport(record,content,rules) {
const kind=readKind(content)
if (kind==="chain.import") this.imports.add(record)
else if (kind==="chain.drop") {
const judge=new ChainJudge(rules,{chain:META_CHAIN,start:null})
judge.judge(record)
if (judge.tally.hasFailed()) return
const dropped=this.imports.add(record)
forgetDropped(this.heads,[...dropped].filter(([name])=>!this.made.has(name)))
if (judge.tally.findings.length||judge.signer===null) this.doubtfulDrops+=dropped.size
}
}
checkMissing(isPart,tally) {
if (!this.heads.size) {
tally.skip("meta","the meta chain records no chain",{matters:false})
return
}
if (this.doubtfulDrops) {
const words=`that ${this.doubtfulDrops} imported chains were dropped says an entry by an unknown signer`
tally.skip("meta",words,{matters:true})
}
const missing=[...this.heads].filter(([name])=>!this.compared.has(name))
if (isPart&&missing.length) tally.skip("meta",`${missing.length} chains that the meta chain knows are not in this part`,{matters:true})
let elsewhere=0
for (const [name,head] of isPart?[]:missing) if (this.elsewhere.has(name)) elsewhere++
else checkHead(head,null,null,tally,"meta","the meta chain")
if (elsewhere) tally.skip("meta",`${elsewhere} chains were kept in databases of their own and are not here`,{matters:true})
if (this.heads.size>=HEADS_MAX$1) tally.skip("meta",`the meta chain records more than ${HEADS_MAX$1} chains`,{matters:true})
const compared=`${this.compared.size} chains match their recorded heads`
tally.notes.set("meta",`${compared} (${this.grown} grown since, ${this.outside} not recorded)`)
}
};
// src/verify/bundle/reader.ts
var INDEXED_MAX=2e5
var BundleReader=class {
decisions=null
constructor(directory,heads,index) {
this.directory=directory
this.heads=heads
this.files=new Map(index.chains.map(claim=>[claim.id,fileOf(claim)]))
}
async *read(chain) {
const name=this.files.get(chain)
if (name===void 0) throw new NotFound(`the chain ${chain} is not in the bundle`)
for await (const items of readChainFile(await this.directory.open(name))) for (const item of items) {
if (!(item instanceof Sealed)) continue
item.chain=chain
yield item
}
}
async get(hash) {
if (this.decisions===null) {
this.decisions=new Map()
for (const chain of this.files.keys()) {
if (!chain.split(".").includes("gate")) continue
for await (const record of this.read(chain)) {
if (this.decisions.size>=INDEXED_MAX) break
this.decisions.set(record.hash,record)
}
}
}
return this.decisions.get(hash)??null
}
blob(digest) {
return readBundleBlob(this.directory,digest)
}
head(chain) {
return this.heads.get(chain)??null
}
};
// src/verify/gzip.ts
var EMPTY$1=new Uint8Array([31,139,8,0,0,0,0,0,0,3,3,0,0,0,0,0,0,0,0,0])
var TRAILER=8
var isStrict
async function* unpackGzip(next) {
isStrict??=canUnpack(new DecompressionStream("gzip"),[EMPTY$1,EMPTY$1]).then(can=>!can)
if (await isStrict) return yield* unpack(new DecompressionStream("gzip"),next)
const pieces=[]
yield* unpack(new DecompressionStream("gzip"),async ()=>{
const piece=await next()
if (piece!==null) pieces.push(piece)
return piece
})
const packed=new Uint8Array(await new Blob(pieces).arrayBuffer())
const content=packed.subarray(findContent(packed),packed.length-TRAILER-1)
if (await canUnpack(new DecompressionStream("deflate-raw"),[content])) throw new Unreadable("something follows the packed file")
}
async function* unpack(stream,next) {
let failure=new Unreadable("no gzip, or a damaged one")
let isOver=false
const reader=new ReadableStream({pull:async control=>{
const piece=await next().catch(error=>{
throw failure=error
})
if (isOver) return
if (piece===null) control.close()
else control.enqueue(piece)
},cancel:()=>void (isOver=true)}).pipeThrough(stream).getReader()
let isWhole=false
try {
for (;;) {
const {value,done}=await reader.read().catch(()=>{
throw failure
})
isWhole=done
if (isWhole) return
yield value
}
} finally {
if (!isWhole) {
await new Promise(goOn=>setTimeout(goOn))
await reader.cancel().catch(()=>{})
}
}
}
async function canUnpack(stream,pieces) {
try {
for await (const _ of unpack(stream,async ()=>pieces.shift()??null));
return true
} catch {
return false
}
}
function findContent(packed) {
const flags=packed[3]
let at=10
if (flags&4) at+=2+packed[at]+256*packed[at+1]
for (const text of [8,16]) if (flags&text) at=packed.indexOf(0,at)+1
return flags&2?at+2:at
}
// src/verify/bundle/site.ts
var CHECK$1="page"
var DATA="explorer/data"
var NAMES$2=`${DATA}/names.js`
var NAMES_MAX=16777216
var TWIN_HEAD_MAX=4096
var TWIN_END="\");\n"
var TWIN_PIECE=32768
var SITE_NAMES=new Set(["index.html","explorer"])
function twinOf(number) {
return `${DATA}/${number}.js`
}
async function isSite(directory) {
return (await directory.list()).some(name=>SITE_NAMES.has(name))
}
async function checkSite(directory,index,blobs,tally,isPageJudged) {
const beside=await directory.list("explorer")??[]
if (!beside.includes("app.js")&&!beside.includes("data")) return
const fail=(words,source)=>tally.fail(CHECK$1,"ARTIFACT_HASH_MISMATCH",words,place(null,null,source))
let names
try {
names=await readNames(await openPath(directory,NAMES$2))
} catch (error) {
if (!(error instanceof BadInput)) throw error
fail(error.message,NAMES$2)
return
}
for (const [number,name] of names.entries()) {
tally.countDone(CHECK$1)
const where=twinOf(number)
try {
if (!await isTwin(directory,where,name)) fail(`the page would show other bytes of ${name} than the bundle has`,where)
} catch (error) {
if (!(error instanceof BadInput)) throw error
fail(error.message,where)
}
}
const files=[INDEX,HEAD$1,...index.meta===null?[]:[META],...index.chains.map(fileOf),...[...blobs].sort().map(digest=>`${BLOBS}/${digest}`)]
for (const name of files) if (!names.includes(name)&&await exists(directory,name)) fail(`${name} has no twin: the page would not show it`,DATA)
tally.notes.set(CHECK$1,`${names.length} files are those that the page shows; ${isPageJudged?"the page is one of Aver's":"whether the page is one of Aver's, aver verify says"}`)
}
async function exists(directory,name) {
try {
await openPath(directory,name)
return true
} catch (error) {
if (error instanceof BadInput) return false
throw error
}
}
function openPath(directory,path) {
return directory.open(...path.split("/"))
}
function readText$1(data) {
return new TextDecoder("latin1").decode(data)
}
async function readNames(file) {
if (file.size>NAMES_MAX) throw new BadInput("names.js is too large")
const script=await readStart(file,NAMES_MAX)
const names=/^averNames\(\[[^]*\]\);\n$/.test(readText$1(script))?readJson(script.subarray(10,-3)):null
if (!Array.isArray(names)||!names.every(name=>typeof name==="string"&&name.isWellFormed())) throw new BadInput("names.js does not list files")
if (new Set(names).size!==names.length) throw new BadInput("names.js lists a file twice")
return names
}
async function isTwin(directory,path,name) {
const file=await openPath(directory,name)
const twin=await openPath(directory,path)
const script=await readStart(twin,TWIN_HEAD_MAX)
const head=/^averFile\(("(?:[^"\\]|\\[^])*"),"/.exec(readText$1(script))
const start=head?.[0].length??0
const end=twin.size-4
if (head===null||end<start||readText$1(await twin.read(end,twin.size))!==TWIN_END) throw new BadInput(`${path} is no twin of a file`)
if (readJson(script.subarray(9,start-2))!==name) return false
let packed=start
const next=async ()=>{
if (packed===end) return null
const piece=decodeBase64(readText$1(await twin.read(packed,packed=Math.min(packed+TWIN_PIECE,end))))
if (piece===null||packed<end&&piece.length<TWIN_PIECE*.75) throw new BadInput(`${path} is damaged`)
return piece
}
let at=0
for await (const bytes of unpackGzip(next)) if (!areSameBytes(await file.read(at,at+=bytes.length),bytes)) return false
return at===file.size
}
// src/verify/bundle/sources.ts
function sourceKey({digits,ledger,tenant}) {
return JSON.stringify([digits,ledger,tenant])
}
function identifySource(stored,named) {
const name=key=>named?.has(key)?pythonText(named.get(key)):""
return {digits:readDigits(stored)??"imported",ledger:name("ledger"),tenant:name("tenant")}
}
// src/verify/bundle/judge.ts
var SIGNERS_KEPT=1e3
var SHORT_CHAINS_MAX=1e3
var BundleJudge=class {
tally=new Tally()
shown=new Tally()
heads=new Map()
signers=new Set()
origins=new Map()
histories=new Map()
recorded=new Map()
owner=NO_OWNER
byIndexAlone=0
absent=0
failed=0
short=0
constructor(directory,index,options,meter) {
this.directory=directory
this.index=index
this.options=options
this.meter=meter
this.keyHistory={...NO_HISTORY,retired:retirementsByTime(options.ring,options.ed25519)}
const {requirePq=false}=options
this.rules=plainRules(options.ring,options.ed25519,{retired:this.keyHistory.retired,requirePq,crew:options.crew??null,along:options.along??new Map()})
this.meta=new MetaMemory(new ImportHistory(options.ring,new Map()))
this.blobs=new BundleBlobs(directory,index.areBlobsLeftOut,meter)
}
async prepare() {
const {ledger,tenant}=this.index
const signed=ledger!==null&&tenant!==null?NO_OWNER:await readOwner(this.directory,this.index)
this.owner={ledger:ledger??signed.ledger,tenant:tenant??signed.tenant}
const replaced=new Map()
for (const claim of this.index.chains) {
if (claim.id!=="keys"&&claim.origin!=="keys") continue
try {
const {named,batches}=await peekChainIdentity(await this.directory.open(fileOf(claim)))
const source=identifySource(claim.id,named)
const identity={ledger:source.ledger,tenant:source.tenant}
const reader=new HistoryReader(this.options.ring,this.options.ed25519,identity)
for await (const items of batches) {
const records=items.filter(item=>item instanceof Sealed)
await prepareRecords(this.rules,records)
for (const record of records) {
reader.take(record)
if (claim.id!=="keys") continue
const pair=readReplacement(record,this.rules)
if (pair!==null) replaced.set(...pair)
if (isValidByItself(record,this.rules)) noteRecordedKey(record,this.recorded)
}
}
const key=sourceKey(source)
const history=await reader.finish(digest=>readBundleBlob(this.directory,digest))
if (!this.histories.has(key)) this.histories.set(key,history)
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
}
this.meta=new MetaMemory(new ImportHistory(this.options.ring,replaced))
if (this.owner.ledger!==null) {
const own={digits:OLD_IMPORT,ledger:this.owner.ledger,tenant:this.owner.tenant??""}
this.keyHistory=this.histories.get(sourceKey(own))??this.keyHistory
this.rules=rulesOf(this.keyHistory,this.rules)
}
}
async judge(examiners) {
const {tally,index}=this
const where=place(null,null,INDEX)
if (index.isUnfinished) {
tally.fail("index","CHAIN_MISSING","the export did not finish",where)
return tally
}
const hasPage=await isSite(this.directory)
if (hasPage) await this.options.checkPage?.(this.directory,tally)
if (index.meta!==null) await this.judgeChain(index.meta,META)
const ofMeta=tally.records
for (const claim of index.chains) {
const limit=this.findLimit()
if (limit!==null) {
tally.fail("index","NOT_READ",`${limit}; the rest was not read`,where)
break
}
await this.judgeChain(claim,fileOf(claim))
}
if (this.byIndexAlone) {
const words=`that ${this.byIndexAlone} chains were imported under their names rests on the index alone`
tally.skip("identity",words,{matters:true})
}
const counts=[["chains",index.chainCount,index.chains.length,"CHAIN_MISSING"],["capsules",index.capsuleCount,tally.records-ofMeta,"TRUNCATED"]]
for (const [what,counted,here,code] of counts) if (counted!==null&&counted!==here) tally.fail("index",counted>here?code:"ROLLBACK",`the index counts ${counted} ${what}; ${here} are here`,where)
if (index.meta!==null) this.meta.checkMissing(index.isPart,tally)
const head=await this.checkHead()
if (index.meta===null) {
const instead=head===null?": chains may have been cut or left out":`; ${HEAD$1} states which chains there are`
tally.skip("meta",`the bundle has no meta chain${instead}`,{matters:false})
}
tally.merge(this.shown)
await this.checkIndex(head,hasPage)
await this.examine(examiners)
reportUnrecorded(tally)
return tally
}
findLimit() {
if (this.absent>1e3) return `more than ${UNREADABLE_MAX} chains that it lists are not here`
if (this.failed>1e3) return `more than ${UNREADABLE_MAX} chains failed`
if (this.short>SHORT_CHAINS_MAX) return `more than ${SHORT_CHAINS_MAX} chains have files of less than ${SHORTEST_CHAIN} bytes: too many`
return null
}
async judgeChain(claim,fileName) {
const {tally}=this
const chain=claim.id
tally.countDone("index")
let named
let name
let remembered
let seen
let judge
const unknown=new Map()
try {
const file=await this.directory.open(fileName)
this.short+=Number(file.size<SHORTEST_CHAIN)
const peeked=await peekChainIdentity(file,unknown)
named=peeked.named
name=named===null&&this.owner.ledger===null?claimedName(claim):claim.id
remembered=this.meta.heads.get(name)
seen=new JudgedChain(remembered===void 0?-1:Number(remembered.count)-1)
judge=this.buildJudge(claim,named)
await this.takeAll(peeked.batches,seen,judge,chain,file.size)
} catch (error) {
if (error instanceof NotFound) {
this.absent++
tally.fail("index","CHAIN_MISSING",`the index lists this chain; there is no ${fileName}`,place(chain))
return
}
if (error instanceof BadInput) {
this.failed++
tally.fail("schema","SCHEMA_INVALID",error.message,place(chain))
return
}
throw error
}
judge.finish()
const isAvers=this.owner.ledger!==null
const origin=this.hasMade(named)?null:named?.get("name")??null
for (const [each,who] of [[claim,"the index"],[seen.ownClaim,"its summary"]]) {
if (each===null) continue
const source={name:who,isAvers}
seen.checkClaim(each,source,judge,chain,chain,this.shown)
if (named!==null) checkOriginClaim(each,origin,source,this.shown,place(chain))
}
warnOfMembers(unknown,this.shown,chain)
this.failed+=Number(judge.tally.hasFailed())
tally.merge(judge.tally)
tally.chains++
const {ledger,tenant}=this.owner
const {facts}=seen
const actual={ledger:ledger??"",tenant:tenant??"",chain,count:facts.count,hash:facts.headHash}
this.heads.set(chain,actual)
this.noteOrigin(chain,name,named,claim)
if (seen.ownClaim!==null&&seen.ownClaim.id!==""&&seen.ownClaim.id!==chain) tally.fail("index","CHAIN_IDENTITY",`the file says that it is '${seen.ownClaim.id}'`,place(chain))
this.meta.compare(name,remembered,actual,seen.atWanted,tally)
}
async takeAll(batches,seen,judge,chain,size) {
let judged=0
for await (const items of prepareBatches(this.rules,batches,found=>found.filter(item=>item instanceof Sealed))) {
let bytes=0
for (const item of items) {
if (judge.stopsReading()) return
const content=seen.take(item,judge)
if (item instanceof Sealed) this.options.witness?.(chain,seen.facts.count-1,item)
if (content!==null&&item instanceof Sealed) {
bytes+=item.canonical.length
this.noteRecord(item,content,chain)
if (item.canonical.includes("\"blob\":{")) await this.blobs.check(content,chain,seen.facts.count-1,judge.tally)
}
}
judged+=bytes
this.meter.add(items.length,bytes)
}
this.meter.add(0,Math.max(0,size-judged))
}
noteOrigin(chain,name,named,claim) {
const claimed=(key,otherwise)=>named?.has(key)?pythonText(named.get(key)):otherwise??""
const origin=claimed("name",claim.origin??name)
if (!EXAMINED_DOMAINS.has(domainOf(origin))) return
const clean=value=>value==="None"?"":value
this.origins.set(chain,{origin,ledger:clean(claimed("ledger",this.owner.ledger)),tenant:clean(claimed("tenant",this.owner.tenant))})
}
noteRecord(record,content,chain) {
if (this.signers.size<SIGNERS_KEPT) this.signers.add(record.signed_by)
if (chain==="meta") this.meta.take(record,content,this.owner,this.rules)
}
hasMade(named) {
const {ledger,tenant}=this.owner
if (named===null||ledger===null||named.get("ledger")!==ledger) return false
return tenant===null||named.get("tenant")===tenant
}
buildJudge(claim,named) {
const {ledger,tenant}=this.owner
if (claim.origin===null||RESERVED_CHAINS.has(claim.id)||this.hasMade(named)) {
const identity={name:claim.id}
if (ledger!==null) identity["ledger"]=ledger
if (tenant!==null) identity["tenant"]=tenant
return new ChainJudge(this.rules,{chain:claim.id,identity,needsBlock:ledger!==null})
}
if (this.meta.imports.imported.get(claim.id)?.origin!==claim.origin) this.byIndexAlone++
return new ChainJudge(this.rulesForImported(claim.id,claim.origin,named),{chain:claim.id,identity:{name:claim.origin}})
}
rulesForImported(stored,origin,named) {
const history=this.histories.get(sourceKey(identifySource(stored,named)))??NO_HISTORY
const retired=new Map()
for (const signer of new Set([...this.rules.retired.keys(),...history.retired.keys()])) {
const ours=this.rules.retired.get(signer)??{retiredAt:null,limits:null}
const limit=ours.limits?.get(stored)
retired.set(signer,limit===void 0?history.retired.get(signer)??{retiredAt:ours.retiredAt,limits:null}:{retiredAt:ours.retiredAt,limits:new Map([[origin,limit]])})
}
const recorded=named?.get("ledger")?new Set(history.roles.keys()):null
return {...this.rules,retired,roles:history.roles,recorded,began:history.began}
}
async checkHead() {
const {tally,owner}=this
let head
try {
head=await readBundleHead(this.directory)
} catch (error) {
if (!(error instanceof BadInput)) throw error
tally.fail("head",error.code,error.message,place(null,null,HEAD$1))
return null
}
if (head===null) {
if (this.directory.isLive) tally.skip("head","a live ledger has no signed heads: its server could hold back the newest records, or whole chains that meta does not know",{matters:false})
else if (owner.ledger!==null) tally.skip("head",`there is no ${HEAD$1}: chains may have been left out, or cut at their ends`,{matters:true})
return null
}
checkBundleHead(head,this.heads,tally,owner,this.rules,this.keyHistory)
return head
}
async checkIndex(head,hasPage) {
const {tally,index}=this
if (this.owner.ledger!==null) checkKeyClaims(index,head,this.signers,this.options.ring,this.recorded,tally)
if (!this.blobs.checkCount(index.blobs,tally)) return
await checkUnlistedFiles(this.directory,index,this.blobs.sizes,hasPage?SITE_NAMES:new Set(),tally)
if (hasPage) await checkSite(this.directory,index,this.blobs.present,tally,this.options.checkPage!==void 0)
}
async examine(examiners) {
const sources=new Map()
for (const [name,{origin,ledger,tenant}] of this.origins) {
const source={digits:readDigits(name)??"",ledger,tenant}
const key=sourceKey(source)
const known=sources.get(key)??{...source,names:new Map()}
sources.set(key,known)
if (!known.names.has(origin)) known.names.set(origin,name)
}
const doubtful=new Set(this.tally.doubtful)
const reader=new BundleReader(this.directory,this.heads,this.index)
for (const {digits,ledger,tenant,names} of sources.values()) {
const isOwn=digits===""&&ledger===this.owner.ledger&&tenant===this.owner.tenant
const chains=[...names].map(([origin,name])=>{
return {name,origin,count:this.heads.get(name).count}
})
const theirs=this.histories.get(sourceKey({digits:digits||"imported",ledger,tenant}))??NO_HISTORY
const rules=isOwn?this.rules:{...this.rules,roles:theirs.roles}
const examination={reader:new ValidRecords(reader,rules,names,doubtful),rules,ledger,tenant,chains,isComplete:!this.index.isPart&&isOwn,isSingle:false}
await examine$1(examiners,examination,this.tally)
await noteJoins(examination,this.tally)
}
}
}
async function judgeBundle(directory,options,examiners) {
const {tally}=await examineBundle(directory,options,examiners)
return conclude(`bundle ${directory.name}`,tally,"signature",[...CHECKS,"index"])
}
async function examineBundle(directory,options,examiners) {
let judge=null
try {
const index=await readIndex(directory)
judge=new BundleJudge(directory,index,options,new ProgressMeter(options,await measureBundle(directory,index)))
await judge.prepare()
return {tally:await judge.judge(examiners),heads:judge.heads,rules:judge.rules,keyHistory:judge.keyHistory}
} catch (error) {
if (!(error instanceof BadInput)) throw error
const tally=new Tally()
tally.fail("index",error.code,error.message,place(null,null,INDEX))
const retired=retirementsByTime(options.ring,options.ed25519)
const keyHistory=judge===null?{...NO_HISTORY,retired}:judge.keyHistory
return {tally,heads:new Map(),rules:plainRules(options.ring,options.ed25519,{retired}),keyHistory}
}
}
async function measureBundle(directory,index) {
let total=0
for (const name of [...index.meta?[META]:[],...index.chains.map(fileOf)]) try {
total+=(await directory.open(name)).size
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
return total
}
// src/verify/capsules.ts
var LINE_MAX$1=ELEMENT_MAX
var BATCH$1=256
async function judgeCapsules(name,source,opening,options) {
const retired=retirementsByTime(options.ring,options.ed25519)
const rules=plainRules(options.ring,options.ed25519,{retired,requirePq:options.requirePq??false,crew:options.crew??null})
const judge=new ChainJudge(rules,{start:null,source:name})
const meter=new ProgressMeter(options,source.size)
let refersToBlobs=false
let first=null
let domain=""
const batches=prepareBatches(rules,readCapsuleItems(source,opening),found=>found.flatMap(({item})=>item instanceof Sealed?[item]:[]))
read:for await (const items of batches) {
let bytes=0
for (const {where,item} of items) {
if (judge.stopsReading()) break read
if (item instanceof BadInput) {
judge.unreadable(item,where)
continue
}
const content=judge.judge(item)
bytes+=item.canonical.length
if (content===null) continue
if (first===null) {
first=content.get("sequence")
domain=readBlock(content)===null?"":content.get("domain")
}
refersToBlobs||=item.canonical.includes(BLOB_REFERENCE)
}
meter.add(items.length,bytes)
}
const tally=judge.finish()
if (first!==null&&BigInt(first.text)!==0n&&tally.records>1) tally.skip("genesis",`begins at sequence ${first.text}: the records before it are not here`,{matters:true})
if (refersToBlobs) tally.skip("blobs","the large values that it refers to are not here",{matters:false})
tally.skip("meta","nothing here shows how many records there once were",{matters:false})
skipExaminers(domain,"the ledger that these records are from is not here",tally)
tally.chains=Number(tally.records>1)
return conclude(name,tally)
}
async function* readCapsuleItems(source,opening) {
let items=[]
for await (const {where,data} of opening==="["?readArray(source):readDocuments(source)) {
try {
if (data instanceof BadInput) throw data
const item=sealedFromJson(data)
if (!item.hash) throw new Unreadable("it is not sealed: it has no hash")
items.push({where,item:checkSealFields(item)})
} catch (error) {
if (!(error instanceof BadInput)) throw error
items.push({where,item:error})
}
if (items.length>=BATCH$1) {
yield items
items=[]
}
}
if (items.length) yield items
}
async function* readArray(source) {
let number=0
for await (const {items,error} of readElementTexts(source)) {
for (const text of items) yield {where:`element ${++number}: `,data:text}
if (error!==null) yield {where:`element ${number+1}, and the rest unread: `,data:error}
}
}
async function* readDocuments(source) {
const reader=new LineReader(source)
let number=1+await reader.skipBlanks()
const first=await readLine(reader)
if (first===null) return
const second=await readLine(reader)
if (second===null) {
yield {where:"",data:checkLength(first)}
return
}
const endsAnObject=lastSolid(first)===125
const beginsAnObject=second.find(byte=>byte!==32&&byte!==9)===123
if (!endsAnObject&&!beginsAnObject) {
const start=joinBytes(first,second)
yield {where:"",data:checkLength(joinBytes(start,await reader.readRest(Math.max(ELEMENT_MAX+1-start.length,0))))}
return
}
const pending=[second]
for (let line=first; line!==null;) {
if (!isBlank(line)) yield {where:`line ${number}: `,data:checkLength(line)}
else if (!pending.length) number+=await reader.skipBlanks()
line=pending.pop()??await readLine(reader)
number++
}
}
async function readLine(reader) {
const line=await reader.readLine(LINE_MAX$1+2)
for (let rest=line; rest!==null&&rest.length>LINE_MAX$1+1&&rest.at(-1)!==10;) rest=await reader.readLine(LINE_MAX$1+2)
return line
}
function checkLength(text) {
return text.length<=LINE_MAX$1+1?text:new Unreadable(`larger than ${LINE_MAX$1} bytes`)
}
function isStripped(byte) {
return byte===32||byte>=9&&byte<=13
}
function isBlank(line) {
return line.every(isStripped)
}
function lastSolid(line) {
for (let at=line.length-1; at>=0; at--) if (!isStripped(line[at])) return line[at]
}
function joinBytes(one,other) {
const joined=new Uint8Array(one.length+other.length)
joined.set(one)
joined.set(other,one.length)
return joined
}
// src/verify/report.ts
var CHECK="report"
var STATEMENT="statement"
var PAGE$3=place(null,null,"page")
var STATEMENT_PLACE=place(null,null,STATEMENT)
var FILE_OPENING="<script type=\"application/vnd.aver.file\" data-name=\""
var STATEMENT_OPENING="<script type=\"application/vnd.aver.statement\" id=\"aver-report\">"
var CLOSING="<\/script>"
var REPORT_MAX=536869888
var FILES_MAX$1=1e5
var STATEMENT_MAX=16777216
var COUNT_END=2n**63n
var FILE_NAME=/^(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,199}|blobs\/[0-9a-f]{64})$/
var NAME_MAX=210
var CONTENT_KEYS=["v","subject","since","until","heads","verdict","made_at","sha256"]
var VERDICT_KEYS=["status","level","records","chains"]
async function judgeReport(name,source,options,examiners) {
if (source.size>REPORT_MAX) throw new NotJudged(`${name} is too large for this verifier; run: aver verify ${name}`)
let tally=new Tally()
let parts=null
try {
parts=splitReport(await source.read(0,source.size))
} catch (error) {
if (!(error instanceof BadInput)) throw error
tally.fail(CHECK,"SCHEMA_INVALID",error.message,PAGE$3)
}
if (parts!==null) tally=await judgeParts(name,parts,options,examiners)
return conclude(name,tally,"signature",[...CHECKS,"index",CHECK])
}
function splitReport(data) {
const text=new TextDecoder("latin1").decode(data)
const first=text.indexOf(STATEMENT_OPENING)
if (first<0||text.indexOf(STATEMENT_OPENING,first+1)>=0) throw new BadInput("a report has one block for its statement")
const start=first+63
const end=text.indexOf(CLOSING,start)
if (end<0||end-start>STATEMENT_MAX) throw new BadInput("the block of the statement does not end")
const hash=startSha256()
hash.update(data.subarray(0,start))
hash.update(data.subarray(end))
const files=new Map()
for (let at=text.indexOf(FILE_OPENING); at>=0; at=text.indexOf(FILE_OPENING,at)) {
const nameStart=at+52
const nameEnd=text.indexOf("\">",nameStart)
const name=nameEnd<0||nameEnd-nameStart>NAME_MAX?"":text.slice(nameStart,nameEnd)
const bodyEnd=text.indexOf(CLOSING,nameEnd)
const body=bodyEnd<0?"":text.slice(nameEnd+2,bodyEnd)
if (!FILE_NAME.test(name)||bodyEnd<0||/[^A-Za-z0-9+/=]/.test(body)) throw new BadInput(`the block of a file at byte ${at} is not of its form`)
if (name==="blobs") throw new BadInput("the report has a file in the place of the directory blobs")
if (files.has(name)||files.size>=FILES_MAX$1) throw new BadInput(`the report has the file ${name} twice, or too many files`)
const bytes=decodeBase64(body)
if (bytes===null) throw new BadInput(`the block of the file ${name} is not base64`)
files.set(name,new MemorySource(bytes))
at=bodyEnd+9
}
return {files,statement:data.subarray(start,end),sha256:hash.hex()}
}
async function judgeParts(name,parts,options,examiners) {
const {tally,heads,rules,keyHistory}=await examineBundle(new FileMap(name,parts.files),options,examiners)
const failed=tally.hasFailed()
const {records,chains}=tally
tally.countDone(CHECK)
if (parts.statement.every(byte=>byte===32||byte>=9&&byte<=13)) {
tally.fail(CHECK,"SIG_MISSING","the report is not signed",STATEMENT_PLACE)
return tally
}
let statement
try {
const dump=found=>dumpBlock(found)
statement=readExactly(parts.statement,"the statement's block",readContent,dump,found=>dumpBlock(found,heads.keys()))
} catch (error) {
if (!(error instanceof BadInput)) throw error
tally.fail(CHECK,error.code,error.message,STATEMENT_PLACE)
return tally
}
const {content}=statement
const text=key=>content.get(key)
if (text("sha256")!==parts.sha256) tally.fail(CHECK,"ARTIFACT_HASH_MISMATCH",`the file has the digest ${parts.sha256}; its statement says another`,PAGE$3)
const stated=content.get("heads")
const statedHeads=[...stated].map(([chain,head])=>({chain,count:toCount(countOf(head,"count"))}))
checkSigners({statement,at:text("made_at"),heads:statedHeads},rules,tally,keyHistory,{check:CHECK,name:STATEMENT})
for (const [chain,head] of stated) {
const actual=heads.get(chain)
if (actual===void 0) tally.fail(CHECK,"CHAIN_MISSING","the statement lists this chain, and it is not in the report",place(chain))
else if (countOf(head,"count")!==BigInt(actual.count)||head.get("hash")!==actual.hash) tally.fail(CHECK,"HEAD_MISMATCH",`the statement says another end; ${actual.count} records are here`,place(chain))
}
for (const chain of heads.keys()) if (!stated.has(chain)) tally.fail(CHECK,"HEAD_MISMATCH","the statement does not list this chain",place(chain))
const verdict=content.get("verdict")
const status=verdict.get("status")
if (countOf(verdict,"records")!==BigInt(records)||countOf(verdict,"chains")!==BigInt(chains)) {
const words=`the statement counts other records; ${records} in ${chains} chains are here`
tally.fail(CHECK,"CLAIM_UNPROVEN",words,STATEMENT_PLACE)
} else if (failed&&status!=="failed") tally.fail(CHECK,"CLAIM_UNPROVEN",`the statement says ${status}, and the records fail`,STATEMENT_PLACE)
tally.notes.set(CHECK,`${status} as signed at ${text("made_at")}`)
return tally
}
function dumpBlock(statement,chains) {
const content=orderKeys(statement.content,CONTENT_KEYS)
content.set("verdict",orderKeys(content.get("verdict"),VERDICT_KEYS))
content.set("heads",orderHeads(content.get("heads"),chains))
return compactJson(statementFields$1({...statement,content})).replaceAll("<","\\u003c")
}
function readContent(data) {
const statement=readStatement(data)
const {purpose,content}=statement
const require=(holds,words)=>{
if (!holds) throw new BadInput(words)
}
require(purpose==="report","the statement is not for a report")
const version=content.get("v")
require(hasExactly(content,CONTENT_KEYS),`the statement does not state exactly ${CONTENT_KEYS.join(", ")}`)
require(isInteger(version)&&version.text==="1","the statement is of another version")
require(["subject","made_at","sha256"].map(key=>content.get(key)).every(value=>typeof value==="string"),"the statement does not name its subject and its time")
require(HEX64.test(content.get("sha256")),"the statement does not name the digest of the page")
for (const key of ["since","until"]) {
const value=content.get(key)
require(value===null||typeof value==="string",`${key} of the statement is a time or null`)
}
const verdict=content.get("verdict")
require(isObject(verdict)&&hasExactly(verdict,VERDICT_KEYS),"the verdict of the statement is not of its form")
for (const key of ["status","level"]) require(typeof verdict.get(key)==="string","the verdict of the statement is not of its form")
for (const key of ["records","chains"]) require(countOf(verdict,key)!==null,"the verdict of the statement is not of its form")
const heads=content.get("heads")
require(isObject(heads)&&[...heads.values()].every(isHead),"the heads of the statement are not of their form")
return statement
}
function hasExactly(object,keys) {
return object.size===keys.length&&keys.every(key=>object.has(key))
}
function countOf(object,key) {
const value=isObject(object)?object.get(key):void 0
if (!isInteger(value)) return null
const count=BigInt(value.text)
return count>=0n&&count<COUNT_END?count:null
}
function isHead(value) {
if (!isObject(value)||!hasExactly(value,["count","hash"])) return false
const count=countOf(value,"count")
const hash=value.get("hash")
return count!==null&&(count===0n?hash===null:typeof hash==="string"&&HEX64.test(hash))
}
// src/verify/run/archive.ts
var GZIP_HEADER=[31,139,8,0,0,0,0,0,2,255]
var BLOCK=512
var TAR_RECORD=10240
var MEMBERS_MAX=64
var TIME_HEADER_MAX=4096
var TIME_HEADER=/^(?:[0-9]{1,4} [amc]time=[0-9]{1,20}(?:\.[0-9]{1,20})?\n)*$/
var RATIO_CHECKED_FROM=64*1024**2
var RATIO_MAX=250
var PIECE=16384
var ROOM=262144
var UNPACKED_MAX=512*1024**2
function readSmall(archive,name,limit) {
const data=archive.members.get(name)??null
if (data!==null&&data.length>limit) throw new Unreadable(`${name} is larger than ${limit} bytes`)
return data
}
async function readArchive(packed,...formats) {
const archive={members:new Map(),isPlain:GZIP_HEADER.every((byte,at)=>packed[at]===byte)}
const tar=await unpackTar(packed)
let fitting=formats
let isDescribed=false
let at=0
const take=size=>{
if (at+size>tar.length) throw damaged("it ends early")
at+=size
return tar.subarray(at-size,at)
}
for (;;) {
const block=take(BLOCK)
if (isZero(block)) break
const header=readHeader(block)
if (header.type==="x"&&!isDescribed) {
checkTimeHeader(header.size,take)
archive.isPlain=false
isDescribed=true
continue
}
isDescribed=false
checkMember(header,archive)
fitting=fitting.filter(names=>names.has(header.name))
if (!fitting.length) throw new Unreadable(`${header.name} is no part of a run`)
archive.isPlain&&=areSameBytes(block,writeHeader(header.name,header.size))
archive.members.set(header.name,take(header.size))
if (!isZero(take((BLOCK-header.size%BLOCK)%BLOCK))) throw new Unreadable(`there are extra bytes after the end of ${header.name}`)
}
if (!isZero(tar.subarray(at))) throw new Unreadable("there are extra bytes after the end of the tar")
archive.isPlain&&=tar.length%TAR_RECORD===0
return archive
}
async function unpackTar(packed) {
let at=0
let out=new Uint8Array(ROOM)
let size=0
for await (const bytes of unpackGzip(async ()=>at<packed.length?packed.subarray(at,at=Math.min(at+PIECE,packed.length)):null)) {
if (size+bytes.length>Math.max(RATIO_CHECKED_FROM,packed.length*RATIO_MAX)) throw new Unreadable(`it unpacks to more than ${RATIO_MAX} times its size`)
if (size+bytes.length>UNPACKED_MAX) throw new NotJudged("it unpacks to more than a page can hold; run: aver verify FILE")
if (size+bytes.length>out.length) {
const larger=new Uint8Array(Math.max(2*out.length,size+bytes.length))
larger.set(out.subarray(0,size))
out=larger
}
out.set(bytes,size)
size+=bytes.length
}
return out.subarray(0,size)
}
function damaged(words) {
return new Unreadable(`not a tar in gzip, or a damaged one: ${words}`)
}
function isZero(data) {
return data.every(byte=>byte===0)
}
function readHeader(block) {
let sum=0
let signed=0
block.forEach((byte,at)=>{
const value=at>=148&&at<156?32:byte
sum+=value
signed+=value>127?value-256:value
})
const stored=readNumber(block.subarray(148,156))
if (stored!==sum&&stored!==signed) throw damaged("bad checksum")
for (const [start,end] of [[100,108],[108,116],[116,124],[136,148],[329,337],[337,345]]) readNumber(block.subarray(start,end))
for (const [start,end] of [[157,257],[265,297],[297,329]]) readText(block.subarray(start,end))
let name=readText(block.subarray(0,100))
const type=String.fromCharCode(block[156])
const prefix=readText(block.subarray(345,500))
if (prefix&&!["L","K","S"].includes(type)) name=`${prefix}/${name}`
return {name,size:readNumber(block.subarray(124,136)),type}
}
function readText(field) {
const end=field.indexOf(0)
try {
return new TextDecoder("utf-8",{fatal:true,ignoreBOM:true}).decode(end<0?field:field.subarray(0,end))
} catch {
throw damaged("a name is not UTF-8")
}
}
function readNumber(field) {
if (field[0]===128||field[0]===255) {
let value=0n
for (const byte of field.subarray(1)) value=(value<<8n)+BigInt(byte)
return Number(field[0]===255?value-(1n<<BigInt(8*(field.length-1))):value)
}
const text=readText(field)
if (/[^\x00-\x7f]/.test(text)) throw damaged("invalid header")
const digits=text.replace(/^[\t-\r\x1c-\x20]+|[\t-\r\x1c-\x20]+$/g,"")||"0"
const match=/^([-+]?)(?:0[oO]_?)?([0-7]+(?:_[0-7]+)*)$/.exec(digits)
if (match===null) throw damaged("invalid header")
const value=Number.parseInt(match[2].replaceAll("_",""),8)
return match[1]==="-"?-value:value
}
function checkTimeHeader(size,take) {
if (!(size>=0&&size<=TIME_HEADER_MAX)) throw new Unreadable("an extended header is too large")
const text=new TextDecoder("latin1").decode(take(size+(BLOCK-size%BLOCK)%BLOCK).subarray(0,size))
if (!TIME_HEADER.test(text)) throw new Unreadable("an extended header says more than times")
}
function checkMember(header,archive) {
if (header.type!=="0") throw new Unreadable(`${header.name} is not a plain file`)
header.name.split("/").forEach(checkFileName)
if (archive.members.has(header.name)) throw new Unreadable(`${header.name} is in it twice`)
if (archive.members.size>=MEMBERS_MAX) throw new Unreadable(`it has more than ${MEMBERS_MAX} members`)
if (header.size<0) throw new Unreadable(`${header.name} has no size`)
}
function writeHeader(name,size) {
const block=new Uint8Array(BLOCK)
const put=(text,at)=>block.set(encoder.encode(text).subarray(0,BLOCK-at),at)
put(name.slice(0,100),0)
put("0000644\x000000000\x000000000\0",100)
put(`${size.toString(8).padStart(11,"0")}\0${"0".repeat(11)}\0`,124)
put("        0",148)
put("ustar\x0000",257)
put(`${block.reduce((total,byte)=>total+byte,0).toString(8).padStart(6,"0")}\0`,148)
return block
}
// src/verify/run/evidence.ts
var EVIDENCE_FILE="evidence.jsonl"
var CAPSULE_LINE_MAX=1048576
var BLOB_LINE_MAX=8388608
var SEAL_MAX=16384
var NEEDS_MAX=1e5
var DIGEST_SHOWN=200
var LINE_KEYS=["chain","canonical","hash","signature","signature_pq","signed_at","signed_by"]
function readCapsuleLine(content) {
if (!isObject(content)||content.size!==LINE_KEYS.length||!LINE_KEYS.every(key=>content.has(key))) throw new Unreadable("a line of capsules has a chain, a seal and its canonical text")
const canonical=content.get("canonical")
const parts=typeof canonical==="string"?[canonical]:canonical
if (!Array.isArray(parts)||parts.length>2||!parts.every(part=>typeof part==="string")) throw new Unreadable("a capsule's canonical text is one text, or two")
const [chain,,...seal]=LINE_KEYS.map(key=>content.get(key))
if (typeof chain!=="string"||!seal.every(value=>typeof value==="string")) throw new Unreadable("the parts of a seal are strings")
const written=chain+seal.join("")
if (codePoints(written)>SEAL_MAX||!isPrintable(written)) throw new Unreadable("its seal holds what no seal holds")
const [hash="",signature="",signature_pq="",signed_at="",signed_by=""]=seal
return {chain,parts,hasAction:parts.length===2,rebuild:action=>new Sealed(parts.join(action??""),{hash,signature,signature_pq,signed_at,signed_by},chain)}
}
var EvidenceNeeds=class {
asked=new Set()
blobs=new Set()
add(record) {
if (record.kind!=="gate.decision") return
const result=at(record.content,"outcome","result")
if (!isObject(result)) return
if (["human_review","human_approved"].includes(result.get("decision"))&&this.asked.size<NEEDS_MAX) this.asked.add(cutText(String(result.get("digest")),DIGEST_SHOWN))
for (const part of ["basis","action"]) {
if (this.blobs.size>=NEEDS_MAX) break
for (const {digest} of blobReferences(result.get(part))) this.blobs.add(digest)
}
}
}
var RunFilesReader=class {
chains=new Map()
blobs=new Map()
constructor(home) {
this.home=home
}
addRecord(record,{hasAction}) {
const name=record.chain??""
const stored=this.chains.get(name)??{count:0,hash:null,records:[]}
this.chains.set(name,stored)
stored.count++
stored.hash=record.hash
if (!hasAction) stored.records.push(record)
}
select(...domains) {
return [...this.chains.keys()].filter(name=>domains.includes(name.split(".",1)[0]))
}
async *read(chain) {
const stored=this.chains.get(chain)
if (stored===void 0) throw new NotFound(`the chain ${chain} is not in the run's files`)
yield* stored.records
}
async get(hash) {
for (const {records} of this.chains.values()) {
const found=records.find(record=>record.hash===hash)
if (found!==void 0) return found
}
return null
}
async blob(digest) {
const found=this.blobs.get(digest)
if (found===void 0) throw new NotFound(`the blob ${digest} is not in the run's files`)
return found
}
head(chain) {
const stored=this.chains.get(chain)
const {ledger,tenant}=this.home
return stored===void 0?null:{ledger,tenant,chain,count:stored.count,hash:stored.hash}
}
}
function readBlobLine(content) {
const digest=isObject(content)?content.get("sha256"):null
if (!isObject(content)||content.size!==2||typeof digest!=="string") throw notEvidence()
const text=content.get("text")
const coded=content.get("base64")
let data
if (typeof text==="string") {
if (!text.isWellFormed()) throw new Unreadable("a blob is UTF-8 text, or base64")
data=encoder.encode(text)
} else if (typeof coded==="string") {
const decoded=decodeBase64(coded)
if (decoded===null) throw new Unreadable("a blob is UTF-8 text, or base64")
data=decoded
} else throw notEvidence()
if (sha256Hex(data)!==digest) throw new Unreadable("a blob has other bytes than its digest says")
return [digest,data]
}
function notEvidence() {
return new Unreadable("a line of evidence is a capsule or a blob")
}
function judgeEvidence(files,needs,reader,rules) {
const tally=new Tally()
const file=files.members.get(EVIDENCE_FILE)
if (file===void 0) return tally
const {ledger,tenant}=reader.home
const roster=chainName("approvers",tenant)
const approvals=chainName("approvals",tenant)
const rosterJudge=new ChainJudge(rules,{chain:roster,identity:{name:roster,ledger,tenant},needsBlock:true})
const fail=(code,words)=>tally.fail("archive",code,words,place(null,null,EVIDENCE_FILE))
let number=0
let last=-1n
let unreadable=0
for (const raw of readOwnLines(file,BLOB_LINE_MAX)) {
number++
try {
if (raw instanceof BadInput) throw raw
const content=readJson(raw)
if (!isObject(content)||!content.has("canonical")) {
const [digest,data]=readBlobLine(content)
if (!needs.blobs.has(digest)) throw new BadInput(`no decision refers to the blob ${digest}`)
if (reader.blobs.has(digest)) throw new BadInput(`the blob ${digest} is in it twice`)
reader.blobs.set(digest,data)
continue
}
const line=readCapsuleLine(content)
if (line.hasAction||![roster,approvals].includes(line.chain)) throw new BadInput("the capsule is neither of the approvers nor of the approvals")
const record=line.rebuild(null)
reader.addRecord(record,{hasAction:false})
if (record.chain===roster) rosterJudge.judge(record)
else last=judgeApproval(record,last,rules,tally)
} catch (error) {
if (!(error instanceof BadInput)) throw error
fail("SCHEMA_INVALID",`line ${number}: ${error.message}`)
if (++unreadable>1e3) {
fail("NOT_READ",REST_UNREAD)
break
}
}
}
tally.merge(rosterJudge.finish())
tally.chains+=reader.select("approvals","approvers").length
return tally
}
function judgeApproval(record,last,rules,tally) {
const judge=new ChainJudge(rules,{chain:record.chain,start:null,needsBlock:true})
const content=judge.judge(record)
tally.merge(judge.finish())
if (content===null) return last
const sequence=BigInt(content.get("sequence").text)
if (sequence<=last) tally.fail("links","SEQUENCE_GAP","it comes twice, or after a later record",place(record.chain,sequence))
return sequence>last?sequence:last
}
// src/verify/run/judge.ts
var ACTIONS_MAX=1e6
var DECISIONS_MAX=2e5
var FILES_BYTES_MAX=33554432
var VERDICT_RANK=new Map([[null,0],["PROOF_ONLY",1],["POLICY_ENFORCED",2],["FULLY_VERIFIED",3]])
var ReceiptJudge=class {
trace=new Trace()
keys=new Set()
count=0
lastReceipt=null
ids=new Set()
last=null
unreadable=0
unzoned=0
constructor(tally,{chain=null,source=null}) {
this.tally=tally
this.chain=chain
this.source=source
}
take(raw) {
const {last}=this
let line=null
try {
if (raw instanceof BadInput) throw raw
line=readActionLine(raw)
} catch (error) {
if (!(error instanceof BadInput)) throw error
this.unreadable++
this.fail("receipts",error.code,error.message)
}
if (line!==null) {
const {action}=line
this.keys.add(line.keys)
if (!hasZone(action.timestamp)) this.unzoned++
if (line.problem!==null) this.fail("receipts","RECEIPT_MISMATCH",line.problem,action)
if (this.ids.has(action.action_id)) this.fail("parents","DUPLICATE_RECORD","an action before it has the same id",action)
this.ids.add(action.action_id)
if (this.count===0) {
if (action.parent_receipt_hash!==null||action.parent_action_id!==null) this.fail("parents","GENESIS_INVALID","the first action names a parent",action)
} else if (last===null) {} else if (action.parent_receipt_hash!==last.receiptHash) this.fail("parents","CHAIN_BREAK","its parent's receipt is not that of the action before",action)
else if (action.parent_action_id!==last.action.action_id) this.fail("parents","CHAIN_BREAK","its parent's id is not that of the action before",action)
this.lastReceipt=line.receiptHash
if (line.keys===RECEIPT_KEY_COUNT&&line.problem===null) this.trace.take(action,line.texts)
}
this.last=line
this.count++
return line
}
*takeAll(lines) {
for (const raw of lines) {
yield this.take(raw)
if (this.unreadable>1e3) {
this.fail("receipts","NOT_READ",REST_UNREAD)
return
}
if (this.count>=ACTIONS_MAX) {
this.fail("receipts","NOT_READ",`it has ${ACTIONS_MAX} actions or more; the rest was not read`)
return
}
}
}
finish() {
if (!this.count) return
this.tally.countDone("receipts",this.count)
this.tally.countDone("parents",this.count)
const covered=[...this.keys].sort((one,other)=>one-other).map(count=>`over ${count} keys`).join(" and ")
const isOwn=this.keys.size===1&&this.keys.has(RECEIPT_KEY_COUNT)
const zones=this.unzoned?`; ${this.unzoned} times without a zone`:""
this.tally.notes.set("receipts",`${this.count} checked, ${isOwn?"over the protocol's 12 keys":covered||"none"}${zones}`)
}
fail(check,code,words,action=null) {
const named=action===null?"":` (${action.action_id})`
const where=this.source?`${this.source}, `:""
this.tally.fail(check,code,words,place(this.chain,null,`${where}action ${this.count}${named}`))
}
}
var RunJudge=class RunJudge {
tally=new Tally()
capsules=new Tally()
wanted=new Set()
count=0
actions=0
head=null
seal=null
waiting=0
waited=0
gateJudge=null
hasGateChain=false
gated=[]
unmarked=0
enforced=[]
decided=new Map()
gateCount=0
gateHead=null
filesLeft=FILES_BYTES_MAX
isOverfull=false
constructor(rules,runId,identity,{storedAs="",isValid=false}={}) {
this.rules=rules
this.runId=runId
this.identity=identity
this.isValid=isValid
this.name=storedAs||identity.chain
this.receipts=new ReceiptJudge(this.tally,{chain:this.name})
this.judge=isValid?null:this.newChainJudge(identity.chain)
}
newChainJudge(chain) {
const identity={name:chain,ledger:this.identity.ledger,tenant:this.identity.tenant}
return new ChainJudge(this.rules,{chain,identity,needsBlock:true})
}
stopsReading() {
return (this.judge?.stopsReading()??false)||(this.gateJudge?.stopsReading()??false)
}
static takeRecord(judge,record) {
if (judge===null) return record.content
const before=countFailures(judge.tally)
const content=judge.judge(record)
return countFailures(judge.tally)>before?null:content
}
take(record,line,text) {
const content=RunJudge.takeRecord(this.judge,record)
const at=this.count
const before=this.head
this.count=at+1
this.head=record.hash
if (content===null) return
const kind=readKind(content)
try {
if (this.seal!==null) this.fail("sealed","STATE_VIOLATION","a record follows the run's seal",at)
else if (kind==="action"&&at>0) this.takeAction(content,line,text,at)
else if (kind==="run.seal"&&at>0) this.takeSeal(content,at,before)
else if (kind==="run.open"&&at===0) {
const result=content.get("outcome").get("result")
const runId=result instanceof Map?result.get("run_id"):void 0
if (runId===void 0) throw new BadInput("it lacks keys of a record of its kind")
if (runId!==this.runId) this.fail("sealed","CHAIN_IDENTITY","the chain was opened for another run",at)
} else this.fail("sealed","STATE_VIOLATION",`a record of kind ${kind.slice(0,40)} does not belong here`,at)
} catch (error) {
if (!(error instanceof BadInput)) throw error
this.fail("sealed","SCHEMA_INVALID",error.message,at)
}
}
takeSeal(content,at,before) {
const {ledger,tenant,chain}=this.identity
const seal=readRunSeal(content,{ledger,tenant,chain})
this.seal=seal
this.tally.countDone("sealed")
if (seal.runId!==this.runId) this.fail("sealed","CHAIN_IDENTITY","the seal is of another run",at)
if (!equalHeads(seal.head,{ledger,tenant,chain,count:at,hash:before})) this.fail("sealed","TRUNCATED","the seal says another head of the chain than it has",at)
}
takeAction(content,line,text,at) {
this.actions++
if (this.receipts.count<this.actions) this.fail("sealed","TRUNCATED","there is no line for it",at)
if (line===null||text===null) return
let {action}=line
const {fields,receiptHash,gate:mark}=readSealedAction(content)
if (canonicalJson(fields)!==text) {
this.fail("sealed","RECEIPT_MISMATCH","the line is not the action that was sealed",at)
return
}
if (receiptHash!==line.receiptHash) this.fail("sealed","RECEIPT_MISMATCH","the capsule has another receipt than the line",at)
if (action.metadata?.has("waiting")) this.waiting++
const refs=readBlock(content)?.get("refs")
if (isObject(refs)&&refs.has("waited")) this.waited++
this.enforced.push(action.policy_verdict==="POLICY_ENFORCED")
const files=action.metadata?.get("files_affected")
if (mark!==null) {
if (this.canKeep(files,this.gated.length)) {
const metadata=files===void 0||files===null?null:new Map([["files_affected",files]])
action={...action,metadata}
const isFirstUse=readBlock(content)?.get("key")===`gate-use:${mark.gateId}`
this.gated.push({number:at-1,action,mark,isFirstUse})
this.wanted.add(mark.record)
}
return
}
if (action.gate_decision!==null||action.gate_score!==null) this.unmarked++
if (action.policy_verdict==="POLICY_ENFORCED"||action.policy_verdict==="FULLY_VERIFIED") this.fail("gates","CLAIM_UNPROVEN",`it says ${action.policy_verdict}, but names no decision of the gate`,at)
}
canKeep(files,count) {
if (isTrue(files)) this.filesLeft-=encoder.encode(canonicalJson(files??null)).length
if (this.filesLeft>=0&&count<DECISIONS_MAX) return true
if (!this.isOverfull) {
this.isOverfull=true
const words=`it has more than ${DECISIONS_MAX} decisions, or ${FILES_BYTES_MAX} bytes of files in them`
this.tally.fail("gates","NOT_READ",`${words}: the rest was not compared`,place(this.name))
}
return false
}
takeGateRecord(record,{isOwn}) {
let content
if (isOwn&&this.seal!==null&&this.seal.gates!==null) {
if (!this.hasGateChain) {
this.hasGateChain=true
this.gateJudge=this.isValid?null:this.newChainJudge(this.seal.gates.chain)
}
this.gateCount++
this.gateHead=record.hash
content=RunJudge.takeRecord(this.gateJudge,record)
} else if (this.isValid) content=record.content
else {
const judge=new ChainJudge(this.rules,{chain:record.chain,start:null,needsBlock:true})
content=judge.judge(record)
if (judge.tally.hasFailed()) content=null
this.capsules.merge(judge.finish())
if (!this.wanted.has(record.hash)) this.tally.fail("gates","STATE_VIOLATION","the run refers to no such record",place(record.chain))
}
if (content!==null) {
const decision=readDecision$1(content)
if (decision===null) return
if (this.canKeep(decision.files,this.decided.size)) this.decided.set(record.hash,decision)
}
this.wanted.delete(record.hash)
}
checkDecisions(isComplete) {
const unproven=new Set()
const used=new Set()
let [observed,reported]=[0,0]
for (const {number,action,mark,isFirstUse} of this.gated) {
const decided=this.decided.get(mark.record)??null
const problem=gateProblem(action,mark,decided,isFirstUse&&!used.has(mark.record))
used.add(mark.record)
if (problem!==null||decided===null||!allows(decided)||decided.isObserved) unproven.add(number)
if (decided?.isObserved) observed++
if (problem!==null) this.fail("gates",problem[0],`${action.action_id}: ${problem[1]}`,number+1)
else if (mark.hasClientAnswer&&decided!==null) {
reported++
const words=`${action.action_id}: only the client says that a person agreed`
this.tally.warn("gates","UNCONFIRMED",words,place(this.name,number+1))
}
}
const count=this.gated.length
if (count) this.tally.countDone("gates",count)
const approved=this.gated.filter(({mark})=>mark.decision==="human_approved").length
const notes=[...approved?[`${approved} approved by a human`]:[],...reported?[`${reported} on the word of the client`]:[],...observed?[`${observed} in the mode observe: nothing was held back`]:[]]
if (notes.length) this.tally.notes.set("gates",`${count} checked, ${notes.join(", ")}`)
const words=`${this.wanted.size} decisions that actions name are not here`
if (this.wanted.size&&isComplete) this.tally.fail("gates","ARTIFACT_MISSING",words,place(this.name))
else if (this.wanted.size) this.tally.skip("gates",words,{matters:true})
if (this.unmarked) {
const claim=`${this.unmarked} actions claim a decision of the gate without naming its record`
this.tally.warn("gates","CLAIM_UNPROVEN",claim,place(this.name))
}
return unproven
}
finish({isComplete}) {
const taken=this.tally
this.receipts.finish()
this.tally=new Tally()
if (this.actions) taken.countDone("sealed",this.actions)
const unproven=this.checkDecisions(isComplete)
skipAnswers(this.tally,this.waiting,this.waited,this.waited>0)
if (this.judge!==null) this.capsules.merge(this.judge.finish())
this.capsules.chains++
if (this.hasGateChain) {
if (this.gateJudge!==null) this.capsules.merge(this.gateJudge.finish())
this.capsules.chains++
}
if (this.seal===null) {
const words="the run is not sealed: actions may be missing at its end"
if (isComplete) this.fail("sealed","TRUNCATED",words,this.count)
else this.tally.skip("sealed",words,{matters:true})
this.tally.skip("proof","the run is not sealed, so nothing is stated about it",{matters:false})
} else this.checkSeal(this.seal,unproven)
return {records:taken,capsules:this.capsules,ending:this.tally}
}
checkSeal(seal,unproven) {
const {receipts}=this
const at=seal.head.count
const actions=Number(at)-1
if (!(seal.numActions===actions&&actions===receipts.count)) {
const words=`the seal counts ${seal.numActions} actions; ${actions} capsules and ${receipts.count} lines are here`
this.fail("sealed","TRUNCATED",words,at)
} else if (seal.finalReceiptHash!==receipts.lastReceipt) this.fail("sealed","RECEIPT_MISMATCH","the seal names another last receipt",at)
const areAllEnforced=this.enforced.length>0&&this.enforced.every((isSaid,index)=>isSaid&&!unproven.has(index))
const isProved=seal.statement!==null
const earned=areAllEnforced?isProved?"FULLY_VERIFIED":"POLICY_ENFORCED":isProved?"PROOF_ONLY":null
const rank=verdict=>VERDICT_RANK.get(verdict)??0
if (seal.policyVerdict!==earned&&rank(seal.policyVerdict)>rank(earned)) this.fail("gates","CLAIM_UNPROVEN",`the seal says ${seal.policyVerdict}; the records support only ${earned}`,at)
if (seal.gates!==null&&(this.gateCount!==seal.gates.count||this.gateHead!==seal.gates.hash)) {
const words=`the seal counts ${seal.gates.count} records of the gate; ${this.gateCount} are here`
this.fail("gates","TRUNCATED",words,at)
}
if (seal.statement===null) {
this.tally.skip("proof","the run was sealed without one",{matters:false})
return
}
this.tally.countDone("proof",receipts.count)
if (seal.statement.runId!==this.runId) this.fail("proof","PROOF_INVALID","the statement is about another run",at)
const problem=traceProblem(seal.statement,receipts.trace)
if (problem!==null) this.fail("proof","PROOF_INVALID",problem,at)
}
fail(check,code,words,at) {
this.tally.fail(check,code,words,place(this.name,at))
}
}
function skipAnswers(tally,waiting,waited,matters) {
if (!waiting&&!waited) return
const words=`${waiting} calls waited for a person by the framework's own means, and ${waited} went on`
tally.skip("answers",`${words}: the person's answers are not in these records`,{matters})
}
function countFailures(tally) {
let count=0
for (const counted of tally.counts.values()) if (counted.status==="failed") count+=counted.count
return count
}
function allows(decided) {
return decided.decision==="pass"||decided.decision==="human_approved"
}
function gateProblem(action,mark,decided,isFirstUse) {
if (decided===null) return null
const {mismatch,isConclusive}=compareWithDecision(action,mark,decided)
const saysEnforced=action.policy_verdict==="POLICY_ENFORCED"
if (mismatch!==null) return ["EVIDENCE_INVALID",`it differs from the gated: ${mismatch}`]
if (!isFirstUse) return ["REPLAY","its decision was used before"]
if (decided.isObserved) return saysEnforced?["CLAIM_UNPROVEN","it says that policy was enforced; the gate only observed"]:null
if (allows(decided)) {
if (isConclusive||!saysEnforced) return null
return ["CLAIM_UNPROVEN","it says that policy was enforced; only its type matches"]
}
if (action.success&&!mark.hasClientAnswer) return ["ROLE_POLICY_VIOLATION",`it was done, though the gate said ${decided.decision}`]
return saysEnforced?["CLAIM_UNPROVEN",`it says that policy was enforced; the gate said ${decided.decision}`]:null
}
// src/verify/run/files.ts
var ARCHIVE_CHECK="archive"
var MANIFEST$1="manifest.json"
var HEAD="head.json"
var PROOF$1="proof.json"
var COMMITMENTS="commitments.json"
var ACTIONS$1="actions.jsonl"
var CAPSULES="capsules.jsonl"
var LISTED$3=[PROOF$1,COMMITMENTS,ACTIONS$1,CAPSULES]
var MEMBER_ORDER=[MANIFEST$1,HEAD,...LISTED$3,EVIDENCE_FILE]
var SMALL_FILE_MAX=1048576
var PROOF_TYPE="recomputation"
var EXAMINED_MAX=64
var CHAINS_MAX$1=1e4
function readManifest(data) {
const keys=[...["schema","protocol_version","run_id","head","created_at","num_actions","final_receipt_hash"],...["policy_verdict","proof_type","files"]]
if (!isObject(data)||data.size!==keys.length||!keys.every(key=>data.has(key))) throw new BadInput("the manifest is not whole")
const get=key=>data.get(key)
if (get("schema")!=="aver_cap_v1"||get("protocol_version")!=="0.4.0") throw new BadInput("the manifest is of another schema or protocol")
const listed=get("files")
if (!isObject(listed)) throw new BadInput("the manifest is not whole")
const files=new Map()
for (const [name,digest] of listed) {
if (!isObject(digest)||digest.size!==2||!digest.has("sha256")||!digest.has("size")) throw new BadInput("the manifest is not whole")
files.set(name,{sha256:digest.get("sha256"),size:digest.get("size")})
}
const head=readHead(get("head"))
const type=get("proof_type")
const names=[...files.keys()].filter(name=>name!==EVIDENCE_FILE)
if (type!==null&&type!==PROOF_TYPE||names.length!==LISTED$3.length||!LISTED$3.every(name=>files.has(name))) throw new BadInput("the manifest says more or less than a manifest does")
const [runId,createdAt,final,count]=["run_id","created_at","final_receipt_hash","num_actions"].map(get)
const hasReceipt=typeof final==="string"||isInteger(count)&&count.value===0
if (typeof runId!=="string"||typeof createdAt!=="string"||!hasReceipt) throw new BadInput("the manifest does not name the run, its time and its last receipt")
if (!isInteger(count)) throw new BadInput("the manifest does not count the run's actions")
return {runId,head,createdAt,numActions:count,finalReceiptHash:final??null,policyVerdict:get("policy_verdict"),isProved:type===PROOF_TYPE,files}
}
function sealDocuments(seal,head) {
const number=value=>new JsonNumber(String(value))
const {statement,gates}=seal
const one=named=>new Map([["chain",named.chain],["count",number(named.count)],["hash",named.hash]])
const proof=new Map([["v",number(1)],["proof_type",null],["statement",null],["constraints",null]])
const commitments=new Map([["v",number(1)],["rows",null],["capsules",one(head)],["gates",gates===null?null:one(gates)]])
if (statement!==null) {
proof.set("proof_type",PROOF_TYPE)
proof.set("statement",statementFields(statement))
proof.set("constraints",new Map(Object.entries(CONSTRAINTS)))
commitments.set("rows",new Map([["air_id",AIR_ID],["tree","rfc6962"],["hash","sha256"],["row_width",number(55)],["count",number(statement.numActions)],["root",statement.rowRoot]]))
}
return new Map([[PROOF$1,encoder.encode(dumpDocument(proof))],[COMMITMENTS,encoder.encode(dumpDocument(commitments))]])
}
async function judgeFiles(name,files,options,examiners) {
const archive=new Tally()
archive.countDone(ARCHIVE_CHECK)
let tally=new Tally()
const fail=(code,words)=>archive.fail(ARCHIVE_CHECK,code,words,place(null,null,MANIFEST$1))
let found=null
try {
const raw=readSmall(files,MANIFEST$1,SMALL_FILE_MAX)
if (raw===null) fail("ARTIFACT_MISSING","there is no manifest")
else {
let data=null
const manifest=readExactly(raw,"the manifest",given=>readManifest(data=given),()=>dumpDocument(data))
if (manifest.head.chain!==runChain(manifest.runId)) fail("CHAIN_IDENTITY","the manifest names a chain that is not the run's")
found={manifest,raw}
}
} catch (error) {
if (!(error instanceof BadInput)) throw error
fail(error.code,error.message)
}
if (found!==null) tally=await new RunFilesJudge(files,found.manifest,found.raw,options,archive).judge(examiners)
tally.merge(archive)
tally.skip("meta","only this run was verified, not the ledger it is from",{matters:false})
return conclude(name,tally,"signature",[...CHECKS,...RUN_CHECKS,ARCHIVE_CHECK])
}
var RunFilesJudge=class {
needs=new EvidenceNeeds()
constructor(files,manifest,raw,options,archive) {
this.files=files
this.manifest=manifest
this.raw=raw
this.options=options
this.archive=archive
const retired=retirementsByTime(options.ring,options.ed25519)
this.rules=plainRules(options.ring,options.ed25519,{retired,requirePq:options.requirePq??false})
this.reader=new RunFilesReader(manifest.head)
}
async judge(examiners) {
const here=[...this.files.members.keys()]
const expected=MEMBER_ORDER.filter(name=>[MANIFEST$1,HEAD].includes(name)||this.manifest.files.has(name))
for (const name of expected) if (!here.includes(name)) this.fail("ARTIFACT_MISSING",`${name} is not here`,name)
for (const name of here) if (!expected.includes(name)) this.fail("SCHEMA_INVALID",`${name} is no part of this run`,name)
const inOrder=expected.filter(name=>here.includes(name)).join()
if (!this.files.isPlain||here.filter(name=>expected.includes(name)).join()!==inOrder) this.fail("NOT_CANONICAL","the archive is not packed as Aver packs it",MANIFEST$1)
const tally=await this.judgeRun()
await this.prefetch(EVIDENCE_FILE)
tally.merge(judgeEvidence(this.files,this.needs,this.reader,this.rules))
await this.examine(examiners,tally)
for (const [name,{sha256,size}] of this.manifest.files) {
const file=this.files.members.get(name)
if (file===void 0) continue
if (sha256Hex(file)!==sha256||!equalJson(size,new JsonNumber(String(file.length)))) this.fail("ARTIFACT_HASH_MISMATCH","the file has other bytes than the manifest says",name)
}
this.checkHead()
return tally
}
fail(code,words,name) {
this.archive.fail(ARCHIVE_CHECK,code,words,place(null,null,name))
}
async prefetch(name) {
const records=[]
for (const raw of readOwnLines(this.files.members.get(name)??new Uint8Array(),CAPSULE_LINE_MAX)) try {
if (!(raw instanceof BadInput)) records.push(readCapsuleLine(readJson(raw)).rebuild(null))
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
await this.options.ed25519.prefetch(records.flatMap(record=>[...ChainJudge.questions(this.rules,record)]))
}
async judgeRun() {
const {manifest}=this
const tally=new Tally()
const judge=new RunJudge(this.rules,manifest.runId,manifest.head)
await this.prefetch(CAPSULES)
const last=this.takeLines(judge)
const {records,capsules,ending}=judge.finish({isComplete:true})
for (const part of [records,capsules,ending]) tally.merge(part)
if (manifest.head.count!==judge.count||manifest.head.hash!==judge.head) {
const words=`the manifest says ${manifest.head.count} capsules, or another head; ${judge.count} are here`
this.fail("TRUNCATED",words,MANIFEST$1)
}
const {seal}=judge
if (seal===null) return tally
const isSame=manifest.numActions.value===seal.numActions&&manifest.finalReceiptHash===seal.finalReceiptHash&&manifest.policyVerdict===seal.policyVerdict&&manifest.isProved===(seal.statement!==null)
if (last!==null&&(!isSame||manifest.createdAt!==last.signed_at)) this.fail("ROLLBACK","the manifest says something else than the run's seal",MANIFEST$1)
for (const [name,document] of sealDocuments(seal,manifest.head)) {
const raw=readSmall(this.files,name,SMALL_FILE_MAX)
if (raw!==null&&!areSameBytes(raw,document)) this.fail("PROOF_INVALID","it says something else than the run's seal",name)
}
return tally
}
takeLines(judge) {
const {chain}=this.manifest.head
const nothing=new Uint8Array()
const actions=judge.receipts.takeAll(readOwnLines(this.files.members.get(ACTIONS$1)??nothing,ACTION_LINE_MAX))
let last=null
let unreadable=0
let number=0
for (const raw of readOwnLines(this.files.members.get(CAPSULES)??nothing,CAPSULE_LINE_MAX)) {
number++
if (judge.stopsReading()) break
let capsule
let line
try {
if (raw instanceof BadInput) throw raw
capsule=readCapsuleLine(readJson(raw))
line=capsule.hasAction&&capsule.chain===chain?actions.next().value??null:null
} catch (error) {
if (!(error instanceof BadInput)) throw error
this.fail("SCHEMA_INVALID",`line ${number}: ${error.message}`,CAPSULES)
if (++unreadable>1e3) {
this.fail("NOT_READ",REST_UNREAD,CAPSULES)
break
}
continue
}
const text=line===null?null:sealForm(line.action,line.texts)
const record=capsule.rebuild(text)
if (capsule.chain===chain) {
judge.take(record,line,text)
last=record
continue
}
judge.takeGateRecord(record,{isOwn:judge.seal?.gates?.chain===capsule.chain})
this.needs.add(record)
this.reader.addRecord(record,{hasAction:capsule.hasAction})
if (this.reader.chains.size>CHAINS_MAX$1) {
this.fail("NOT_READ",`it has records of more than ${CHAINS_MAX$1} chains; the rest was not read`,CAPSULES)
break
}
}
while (!actions.next().done);
return last
}
async examine(examiners,tally) {
const names=[...this.reader.select("gate").slice(0,EXAMINED_MAX),...this.reader.select("approvals","approvers")]
const chains=names.map(name=>({name,origin:name,count:this.reader.chains.get(name)?.count??0}))
const reader=new ValidRecords(this.reader,this.rules,new Map(names.map(name=>[name,name])),new Set(tally.doubtful))
const {ledger,tenant}=this.manifest.head
const isComplete=this.manifest.files.has(EVIDENCE_FILE)
await examine$1(examiners,{reader,rules:this.rules,ledger,tenant,chains,isComplete,isSingle:true},tally)
}
checkHead() {
const {manifest}=this
let raw
let statement
try {
raw=readSmall(this.files,HEAD,SMALL_FILE_MAX)
if (raw===null) return
statement=readExactly(raw,"the head",data=>readStatement(data,"head"),found=>dumpDocument(statementFields$1(found)))
} catch (error) {
if (!(error instanceof BadInput)) throw error
this.fail(error.code,error.message,HEAD)
return
}
const number=value=>new JsonNumber(String(value))
const content=new Map([["v",number(1)],["run_id",manifest.runId],["ledger",manifest.head.ledger],["tenant",manifest.head.tenant],["chain",manifest.head.chain],["count",number(manifest.head.count)],["hash",manifest.head.hash],["num_actions",manifest.numActions],["final_receipt_hash",manifest.finalReceiptHash],["manifest_sha256",sha256Hex(this.raw)]])
if (statement.purpose!=="cap"||!equalJson(statement.content,content)) this.fail("ARTIFACT_HASH_MISMATCH","the head that was signed is not that of this manifest",HEAD)
const results=checkStatement(statement,this.rules.ring,this.rules.ed25519)
if (!results.length) this.fail("SIG_MISSING","the head is not signed",HEAD)
for (const {by,key,outcome} of results) {
const role=key===null?null:roleOf(this.rules,key)
const retired=key===null?null:this.rules.retired.get(key.ed25519)?.retiredAt??null
if (outcome==="unknown") {
const words=`the head was signed by ${by}, whose key is not known here`
this.archive.add({check:"signature",status:"not_checked",code:"UNKNOWN_SIGNER",words,place:place(null,null,HEAD)})
} else if (outcome!=="valid") this.fail("SIG_INVALID",`the signature of the head is not ${by}'s`,HEAD)
else if (role!==null&&!role.mayAttest) this.fail("KEY_MISMATCH",`${by}, who signed the head, is a key of ${role}; only the ledger's key may`,HEAD)
else if (retired!==null&&manifest.createdAt>retired) this.fail("KEY_RETIRED",`${by}, who signed the head, was retired before`,HEAD)
}
}
};
// src/verify/run/capseal.ts
var MANIFEST="manifest.json"
var ACTIONS="actions.jsonl"
var ACTIONS_JSON="actions.json"
var CAPSULE="agent_capsule.json"
var PROOF="proof.json"
var METADATA="run_metadata.json"
var ROWS="row_archive/rows.json"
var LEVELS="row_archive/merkle_levels.json"
var CAPSEAL_MEMBERS=new Set([MANIFEST,ACTIONS,ACTIONS_JSON,CAPSULE,PROOF,METADATA,ROWS,LEVELS])
var AVER_ONLY=["head.json","capsules.jsonl","commitments.json",EVIDENCE_FILE]
var MODULUS=2n**64n-2n**32n+1n
var LEAVES_COMPARED_MAX=2e5
function readDocument(archive,name) {
const raw=readSmall(archive,name,name===CAPSULE?ELEMENT_MAX:SMALL_FILE_MAX)
return raw===null?void 0:readJson(raw)
}
function isCapseal(archive) {
if (AVER_ONLY.some(name=>archive.members.has(name))) return false
if (archive.members.has(CAPSULE)) return true
try {
const manifest=readDocument(archive,MANIFEST)
return isObject(manifest)&&["run_cap_v1","agent_cap_v1"].includes(manifest.get("schema"))
} catch (error) {
if (error instanceof BadInput) return false
throw error
}
}
async function judgeCapseal(name,archive,_options) {
const judge=new CapsealJudge(archive)
await judge.judge()
const {tally,receipts}=judge
tally.records=receipts.count
receipts.finish()
tally.skip("signature","the public tool's format has no signatures: anyone can make such a file",{matters:true})
tally.skip("sealed","nothing is sealed in this format, and metadata are not bound",{matters:true})
tally.skip("gates","the gate's decisions are not recorded in this format",{matters:true})
return conclude(name,tally,"signature",[...CHECKS,...RUN_CHECKS,ARCHIVE_CHECK])
}
function limbs(digest) {
const view=new DataView(fromHex(digest).buffer)
return [view.getBigUint64(0,true)%MODULUS,view.getBigUint64(8,true)%MODULUS]
}
function buildRow(index,action,receipt) {
const flags=Number(action.success)|Number(action.gate_decision!=="skip")<<1|Number(action.gate_score!==null)<<2|Number(action.policy_verdict!==null)<<3|Number(action.action_type==="tool_call")<<4|Number(action.action_type==="code_gen")<<5
const hashes=[sha256Hex(action.action_type),action.instruction_hash,action.input_hash,action.output_hash]
const parent=action.parent_receipt_hash===null?[0n,0n]:limbs(action.parent_receipt_hash)
return [BigInt(index),...hashes.flatMap(limbs),...parent,...limbs(receipt),BigInt(flags)]
}
function hashRow(row) {
const data=new Uint8Array(8+16*row.length)
const view=new DataView(data.buffer)
view.setBigUint64(0,row[0])
row.forEach((value,at)=>view.setBigUint64(8+16*at+8,value))
return sha256Bytes(data)
}
function buildLevels(leaves) {
const levels=[leaves]
for (let level=leaves; level.length>1; levels.push(level)) {
const above=[]
for (let at=0; at<level.length; at+=2) {
const pair=new Uint8Array(64)
pair.set(level[at])
pair.set(level[at+1]??level[at],32)
above.push(sha256Bytes(pair))
}
level=above
}
return levels
}
var ArrayFile=class ArrayFile {
items=[]
error=null
at=0
isReported=false
constructor(isMissing,report) {
this.isMissing=isMissing
this.report=report
}
static async open(data,report) {
const file=new ArrayFile(data===void 0,report)
if (data===void 0) return file
for await (const {items,error} of readElements(new MemorySource(data))) {
for (const item of items) if ("value" in item) file.items.push(item.value)
file.error=error
}
return file
}
next() {
if (this.at<this.items.length) return this.items[this.at++]
if (!this.isReported) {
this.isReported=true
if (this.isMissing) this.report("ARTIFACT_MISSING","it is not here")
else if (this.error!==null) this.report("SCHEMA_INVALID",this.error.message)
}
}
}
var MissingKeys=class extends BadInput {}
var CapsealJudge=class {
tally=new Tally()
receipts=new ReceiptJudge(this.tally,{source:ACTIONS})
leaves=[]
constructor(archive) {
this.archive=archive
}
async judge() {
this.tally.countDone(ARCHIVE_CHECK)
if (this.archive.members.has(ACTIONS)) await this.judgeLines()
else this.fail("ARTIFACT_MISSING","there are no actions with receipts",ACTIONS)
this.checkDocument(MANIFEST,data=>this.checkManifest(data))
this.checkDocument(CAPSULE,data=>this.checkCapsule(data))
this.checkDocument(PROOF,data=>this.checkProof(data))
if (this.archive.members.has(METADATA)) this.checkDocument(METADATA,data=>this.checkMetadata(data))
if (this.archive.members.has(LEVELS)) await this.checkLevels()
}
checkDocument(name,check) {
try {
const document=readDocument(this.archive,name)
if (document===void 0||document===null) this.fail("ARTIFACT_MISSING",`${name} is not here`,name)
else check(document)
} catch (error) {
if (!(error instanceof BadInput)) throw error
this.fail("SCHEMA_INVALID",error.message,name)
}
}
fail(code,words,name,check=ARCHIVE_CHECK) {
this.tally.fail(check,code,words,place(null,null,name))
}
async judgeLines() {
const open=name=>ArrayFile.open(this.archive.members.get(name),(code,words)=>this.fail(code,words,name))
const listed=await open(ACTIONS_JSON)
const rows=await open(ROWS)
const lines=readRawLines(this.archive.members.get(ACTIONS),ACTION_LINE_MAX)
for (const line of this.receipts.takeAll(lines)) {
const beside=listed.next()
if (line===null) continue
const row=buildRow(this.leaves.length,line.action,line.receiptHash)
this.leaves.push(hashRow(row))
const expected=row.map(value=>new JsonNumber(String(value)))
if (!equalJson(rows.next(),expected)) this.fail("PROOF_INVALID",`row ${row[0]} is not that of its action`,ROWS,"proof")
if (!equalJson(beside,actionFields(line.action))) this.fail("RECEIPT_MISMATCH",`action ${this.receipts.count-1} is another one than in ${ACTIONS}`,ACTIONS_JSON)
}
for (const [name,file] of [[ACTIONS_JSON,listed],[ROWS,rows]]) {
const more=file.next()
if (more!==void 0&&more!==null) this.fail("TRUNCATED",`it has more entries than ${ACTIONS}`,name)
}
}
checkManifest(manifest) {
if (!isObject(manifest)) throw new BadInput("it is not an object")
const last=this.receipts.lastReceipt
const expected=[["chain_hash",last],["root_hex",last],["actions_count",this.count]]
for (const [key,value] of expected) if (manifest.has(key)&&!equalJson(manifest.get(key),value)) this.fail("TRUNCATED",`its ${key} is not that of the actions`,MANIFEST)
}
checkCapsule(capsule) {
const whole=member(capsule)
const own=new Map([...whole].filter(([key])=>key!=="capsule_hash"))
const statement=get(whole,"statement")
if (get(whole,"capsule_hash")!==sha256Hex(dumpSpaced(own))||get(whole,"statement_hash")!==sha256Hex(dumpSpaced(statement))) this.fail("HASH_MISMATCH","its hashes are not its own",CAPSULE)
const inputs=member(get(member(statement),"public_inputs"))
if (!equalJson(get(inputs,"num_actions"),this.count)||!equalJson(get(inputs,"final_receipt_hash"),this.receipts.lastReceipt)) this.fail("TRUNCATED","it is about other actions",CAPSULE)
const root=this.rowRoot
if (get(member(statement),"row_commitment")!==root||get(member(get(whole,"commitment")),"row_root")!==root) this.fail("PROOF_INVALID","its root is not that of the rows",CAPSULE,"proof")
const proof=readSmall(this.archive,PROOF,1048576)??new Uint8Array()
if (get(member(get(whole,"proof")),"proof_hash")!==sha256Hex(proof)) this.fail("ARTIFACT_HASH_MISMATCH","it has the hash of another proof.json",CAPSULE,"proof")
}
checkProof(proof) {
this.tally.countDone("proof",this.receipts.count)
const whole=member(proof)
if (!(get(whole,"air_id")==="agent_air_v1"&&get(member(get(whole,"constraint_verification")),"valid")===true)) this.fail("PROOF_INVALID","it does not say that the constraints hold",PROOF,"proof")
if (get(member(get(whole,"commitment")),"row_root")!==this.rowRoot||!equalJson(get(member(get(whole,"statement")),"num_actions"),this.count)) this.fail("PROOF_INVALID","it is about other rows",PROOF,"proof")
}
checkMetadata(metadata) {
const whole=member(metadata)
const expected=[["num_actions",this.count],["final_receipt_hash",this.receipts.lastReceipt]]
for (const [key,value] of expected) if (whole.has(key)&&!equalJson(whole.get(key),value)) this.fail("TRUNCATED",`its ${key} is not that of the actions`,METADATA)
}
async checkLevels() {
if (this.leaves.length>LEAVES_COMPARED_MAX) {
this.tally.skip("proof",`${LEVELS} was not compared: more than ${LEAVES_COMPARED_MAX} leaves`,{matters:false})
return
}
const expected=buildLevels(this.leaves).map(level=>level.map(toHex$1))
const file=await ArrayFile.open(this.archive.members.get(LEVELS),(code,words)=>this.fail(code,words,LEVELS))
const levels=[]
for (let level=file.next(); level!==void 0; level=file.next()) levels.push(level)
if (!equalJson(levels,expected)) this.fail("PROOF_INVALID","it is not the tree over the rows",LEVELS,"proof")
}
get count() {
return new JsonNumber(String(this.receipts.count))
}
get rowRoot() {
const top=buildLevels(this.leaves).at(-1)?.[0]
return top===void 0?sha256Hex("empty"):toHex$1(top)
}
}
function member(value) {
if (!isObject(value)) throw new MissingKeys("it lacks keys that the tool writes")
return value
}
function get(data,key) {
const value=data.get(key)
if (value===void 0) throw new MissingKeys("it lacks keys that the tool writes")
return value
}
// src/verify/run/verify.ts
var WHOLE_MAX=256*1024**2
async function readWhole(name,source) {
if (source.size>WHOLE_MAX) throw new NotJudged(`${name} is larger than a page can hold; run: aver verify ${name}`)
return source.read(0,source.size)
}
async function judgeArchive(name,source,options,examiners) {
try {
const archive=await readArchive(await readWhole(name,source),new Set(MEMBER_ORDER),CAPSEAL_MEMBERS)
return isCapseal(archive)?await judgeCapseal(name,archive,options):await judgeFiles(name,archive,options,examiners)
} catch (error) {
if (!(error instanceof BadInput)) throw error
const tally=new Tally()
tally.fail(ARCHIVE_CHECK,error.code,error.message,place(null,null,name))
return conclude(name,tally,"signature",[...CHECKS,...RUN_CHECKS,ARCHIVE_CHECK])
}
}
async function judgeActions(name,source) {
const tally=new Tally()
const receipts=new ReceiptJudge(tally,{source:name})
for (const _ of receipts.takeAll(readRawLines(await readWhole(name,source),ACTION_LINE_MAX)));
tally.records=receipts.count
receipts.finish()
tally.skip("sealed",`receipts and links can be made by anyone: it is alone, and nothing says where it is sealed`,{matters:true})
tally.skip("signature","lines of actions are not signed",{matters:true})
return conclude(name,tally,"signature",[...CHECKS,...RUN_CHECKS])
}
async function judgeProof(name,source,options) {
const tally=new Tally()
try {
judgeProofDocument(readJson(await source.read(0,Math.min(source.size,16777217))),name,options,tally)
} catch (error) {
if (!(error instanceof BadInput)) throw error
tally.fail("proof",error.code,error.message,place(null,null,name))
}
tally.skip("sealed","the other actions of the run are not here",{matters:false})
tally.skip("links","the run's seal is on its own here",{matters:false})
tally.skip("gates","the gate's records are not here",{matters:false})
return conclude(name,tally,"signature",[...CHECKS,...RUN_CHECKS])
}
function judgeProofDocument(document,name,options,tally) {
const keys=["v","proof_type","statement","index","action","receipt_hash","path","seal"]
if (!isObject(document)||document.size!==keys.length||!keys.every(key=>document.has(key))) throw new BadInput("a proof of inclusion has other keys")
const [version,type,stated,index,acted,receipt,path,entry]=keys.map(key=>document.get(key))
if (!isInteger(version)||version.text!=="1"||type!=="inclusion") throw new BadInput("this is a proof of another sort or version")
if (!Array.isArray(path)||!isInteger(index)) throw new BadInput("a proof of inclusion has a place and a path")
const where=place(null,null,name)
const action=readAction(acted)
tally.countDone("receipts")
if (receiptHash(action)!==receipt) tally.fail("receipts","RECEIPT_MISMATCH","the receipt is not that of the action",where)
const statement=readRunStatement(stated)
const chain=runChain(statement.runId)
const retired=retirementsByTime(options.ring,options.ed25519)
const judge=new ChainJudge(plainRules(options.ring,options.ed25519,{retired,requirePq:options.requirePq??false}),{chain,start:null,source:name,needsBlock:true})
const parts=["canonical",...SEAL_KEYS]
if (!isObject(entry)||entry.size!==parts.length||!parts.every(key=>entry.has(key))) throw new BadInput("a proof's seal is a capsule with its canonical text")
const [canonical,hash,signature,signature_pq,signed_at,signed_by]=parts.map(key=>entry.get(key))
if (![canonical,hash,signature,signature_pq,signed_at,signed_by].every(value=>typeof value==="string")) throw new BadInput("the parts of a seal are strings")
const seal={hash,signature,signature_pq,signed_at,signed_by}
const content=judge.judge(checkSealFields(new Sealed(canonical,seal)))
tally.merge(judge.finish())
tally.countDone("proof")
const fail=words=>tally.fail("proof","PROOF_INVALID",words,where)
if (content===null||readKind(content)!=="run.seal") {
fail("the seal is not that of a run")
return
}
const sealed=readRunSeal(content,{ledger:"",tenant:"",chain})
const theirs=sealed.statement
if (!(theirs!==null&&theirs.runId===statement.runId&&theirs.numActions===statement.numActions&&theirs.finalReceiptHash===statement.finalReceiptHash&&theirs.rowRoot===statement.rowRoot)||sealed.runId!==statement.runId||sealed.numActions!==statement.numActions) fail("the run's seal says another statement")
const problem=inclusionProblem(statement,index.value,action,path)
if (problem!==null) fail(problem)
}
var RUN_EXAMINER={domains:["actions"],checks:RUN_CHECKS,examine:examineRuns}
async function examineRuns(examination) {
const tally=new Tally()
let unsealed=0
let waiting=0
let waited=0
for (const chain of selectChains(examination,"actions")) {
if (!chain.count) continue
await guard(tally,"sealed",place(chain.name),async ()=>{
const {run,judge}=await examineRun(examination,chain)
unsealed+=Number(judge!==null&&judge.seal===null)
waiting+=judge?.waiting??0
waited+=judge?.waited??0
tally.merge(run)
})
}
if (examination.isSingle) {
for (const check of RUN_CHECKS) if (!tally.done.has(check)) tally.skip(check,DOES_NOT_APPLY,{matters:false})
return tally
}
skipAnswers(tally,waiting,waited,false)
if (unsealed) tally.notes.set("sealed",`${tally.done.get("sealed")??0} checked; ${unsealed} runs are not sealed yet`)
return tally
}
async function examineRun(examination,chain) {
const {reader,ledger,tenant}=examination
let runId
try {
for await (const first of reader.read(chain.origin)) {
const result=first.content.get("outcome").get("result")
runId=isObject(result)?result.get("run_id"):void 0
break
}
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
if (runId===void 0) {
const run=new Tally()
run.fail("sealed","CHAIN_IDENTITY","the chain does not begin as a run does",place(chain.name,0))
return {run,judge:null}
}
const identity={ledger,tenant,chain:chain.origin,count:0,hash:null}
const judge=new RunJudge(examination.rules,String(runId),identity,{storedAs:chain.name,isValid:true})
let count=0
for await (const record of reader.read(chain.origin)) {
if (count++>=chain.count) break
const line=await takeLine(judge,record,digest=>reader.blob(digest))
judge.take(record,line,line===null?null:sealForm(line.action,line.texts))
}
await takeGateRecords(examination,judge)
const {records:tally,ending}=judge.finish({isComplete:false})
if (!examination.isSingle) {
tally.notes.clear()
ending.skipped.delete("sealed")
ending.skipped.delete("answers")
}
tally.merge(ending)
if (judge.receipts.count!==judge.actions) {
const words=`the file has ${judge.receipts.count} actions; ${judge.actions} are sealed`
tally.fail("sealed","TRUNCATED",words,place(chain.name,chain.count))
}
return {run:tally,judge}
}
async function takeLine(judge,record,blob) {
try {
if (record.kind!=="action") return null
const action=await loadAction(readSealedAction(record.content),blob)
const texts=encodeAction(action)
const line=`${asciiJson(actionFields(action)).slice(0,-1)},"receipt_hash":"${texts.receiptHash}","canonical_fields":${texts.receipt}}`
return judge.receipts.take(encoder.encode(line))
} catch (error) {
if (!(error instanceof BadInput)) throw error
return judge.receipts.take(new BadInput(error.message))
}
}
async function takeGateRecords({reader},judge) {
const gates=judge.seal?.gates??null
if (gates!==null) try {
let count=0
for await (const record of reader.read(gates.chain)) {
if (count++>=gates.count) break
judge.takeGateRecord(record,{isOwn:true})
}
} catch (error) {
if (!(error instanceof NotFound)) throw error
}
for (const digest of [...judge.wanted]) {
const found=await reader.get(digest)
if (found!==null) judge.takeGateRecord(found,{isOwn:false})
}
}
// src/verify/subject.ts
var BEGINNING_BYTES=65536
var SQLITE_MAGIC="SQLite format 3\0"
var ACT_KEYS=new Set(["act_file","action_id","approved_in","blobs"])
var REPORT_MARKS=["<meta name=\"aver\" content=\"report 1\">","<p class=\"meta\">Report Â· "]
function jsonOpening(beginning) {
let at=beginning[0]===239&&beginning[1]===187&&beginning[2]===191?3:0
while (at<beginning.length&&(beginning[at]===32||beginning[at]>=9&&beginning[at]<=13)) at++
return beginning[at]===123?"{":beginning[at]===91?"[":""
}
function firstKeys(beginning) {
if (jsonOpening(beginning)!=="{") return []
const text=new TextDecoder("utf-8",{ignoreBOM:true}).decode(beginning)
const keys=[]
let at=text.indexOf("{")+1
const readValue=()=>{
const end=findValueEnd(text,at)
if (end===null) throw new Error("the text ends")
const value=JSON.parse(text.slice(at,end))
at=end
return value
}
try {
for (;;) {
at=skipSpace(text,at)
if (text[at]!=="\"") return keys
const key=readValue()
at=skipSpace(text,at)
if (text[at]!==":") return keys
keys.push(key)
at=skipSpace(text,at+1)
if (at>=text.length) return keys
readValue()
at=skipSpace(text,at)
if (text[at]!==",") return keys
at++
}
} catch {
return keys
}
}
function recogniseFile(name,beginning) {
const start=new TextDecoder("latin1").decode(beginning)
const opening=jsonOpening(beginning)
if (start.startsWith(SQLITE_MAGIC)&&beginning.length>=100||name==="ledger.db"&&!opening) return "elsewhere"
const keys=firstKeys(beginning)
const has=(...names)=>names.every(key=>keys.includes(key))
if (has("capsules")) return "chain"
if (has("v","purpose")&&/"purpose"\s*:\s*"checkpoint"/.test(start)) return "elsewhere"
if (name.endsWith(".cap")||beginning[0]===31&&beginning[1]===139) return "cap"
if (new Set(keys.slice(0,4).filter(key=>ACT_KEYS.has(key))).size>1) return "elsewhere"
if (REPORT_MARKS.some(mark=>start.includes(mark))) return "report"
if (has("proof_type","statement","path")) return "proof"
if (name==="actions.jsonl"||has("action_id","receipt_hash")) return "actions"
return opening||beginning.every(byte=>byte===32||byte>=9&&byte<=13)?"capsules":null
}
// src/verify/verify.ts
var EXAMINERS=[APPROVALS_EXAMINER,RUN_EXAMINER]
async function openEd25519() {
const ed25519=new Ed25519()
await ed25519.checkPlatform(ed25519_default.cases)
return ed25519
}
async function verifyDirectory(directory,options) {
if ((await directory.list()).includes("index.json")) return judgeBundle(directory,options,EXAMINERS)
throw new NotJudged(`${directory.name} is no bundle: it has no index.json. For a run or a ledger, run: aver verify PATH`)
}
async function verifyFile(name,source,options) {
const beginning=await readStart(source,BEGINNING_BYTES)
switch (recogniseFile(name,beginning)) {
case "chain":return judgeChainFile(name,source,options)
case "capsules":return judgeCapsules(name,source,jsonOpening(beginning),options)
case "cap":return judgeArchive(name,source,options,EXAMINERS)
case "actions":return judgeActions(name,source)
case "report":return judgeReport(name,source,options,EXAMINERS)
case "proof":return judgeProof(name,source,options)
case "elsewhere":throw new NotJudged(`a page cannot judge ${name}; run: aver verify ${name}`)
default:throw new NotJudged(`${name} is nothing that Aver can verify`)
}
}
var COUNT_MAX=0x38d7ea4c68000
var COST_MAX=1e9
var NOTHING=new Map()
function contentOf(record) {
try {
return record.content
} catch (error) {
if (error instanceof BadInput) return null
throw error
}
}
function asText(value) {
return typeof value==="string"?value:""
}
function asObject(value) {
return isObject(value)?value:NOTHING
}
function asList(value) {
return Array.isArray(value)?value:[]
}
function asTexts(value) {
return asList(value).filter(item=>typeof item==="string"&&item!=="")
}
function asCount(value) {
if (!isInteger(value)) return null
const count=value.value
return count>=0&&count<COUNT_MAX?count+0:null
}
function asCost(value) {
if (!(value instanceof JsonNumber)) return null
const cost=value.value
return cost>=0&&cost<COST_MAX?cost:null
}
function isTruthy(value) {
if (value===void 0||value===null||value===false||value==="") return false
if (value instanceof JsonNumber) return value.value!==0
if (Array.isArray(value)) return value.length>0
return isObject(value)?value.size>0:true
}
function lookUp(table,name) {
return Object.hasOwn(table,name)?table[name]:void 0
}
var WEEK=/^(\d{4})(-?)W(\d\d)(?:\2(\d))?/
var MOMENT=/^(\d{4})(-?)(\d\d)\2(\d\d)(?:[^\d](\d\d)(?:(:?)(\d\d)(?:\6(\d\d))?)?(?:[.,](\d+))?(Z|[+-]\d\d(?:(:?)\d\d(?:\11\d\d(?:\.\d+)?)?)?)?)?$/u
function weekDate(whole,year,_,week,day="1") {
const date=new Date(0)
date.setUTCFullYear(Number(year),0,4)
date.setUTCDate(4-(date.getUTCDay()||7)+7*Number(week)-3)
if (date.getUTCFullYear()!==Number(year)||!/[1-7]/.test(day)) return whole
date.setUTCDate(date.getUTCDate()-4+Number(day))
return date.toISOString().slice(0,10)
}
function toUtc(value) {
if (typeof value!=="string") return null
const found=MOMENT.exec(value.replace(WEEK,weekDate))
if (found===null) return null
const [,year,,month,day,hour="0",,minute="0",second="0",fraction="",zone=""]=found
const parts=[year,month,day,hour,minute,second].map(Number)
if (parts[0]<1||parts[3]>23||parts[4]>59||parts[5]>59) return null
const moment=new Date(0)
moment.setUTCFullYear(parts[0],parts[1]-1,parts[2])
if (moment.getUTCMonth()!==parts[1]-1||moment.getUTCDate()!==parts[2]) return null
moment.setUTCHours(parts[3],parts[4],parts[5])
const digits=zone.replace(/[^\d]/g,"")
const offset=Number(digits.slice(0,2)||0)*3600+Number(digits.slice(2,4)||0)*60+Number(digits.slice(4,6)||0)
if (offset>=86400) return null
const utc=new Date(moment.getTime()-(zone.startsWith("-")?-1:1)*offset*1e3)
const shown=utc.toISOString()
if (!/^\d/.test(shown)||utc.getUTCFullYear()<1) return null
const micro=fraction.slice(0,6).padEnd(6,"0")
return `${shown.slice(0,19)}${Number(micro)?`.${micro}`:""}+00:00`
}
var known_tools_default={"command":["bash","bashtool","containerexec","exec","execcommand","executebash","executecommand","localshell","monitor","runcommand","runcommands","runinterminal","runshellcommand","runterminalcmd","shell","shellcommand","terminal","unifiedexec"],"patch":["applypatch"],"path":["absolutepath","dest","destination","dir","directory","dirpath","file","filename","filepath","filepaths","files","folder","inputfile","inputpath","localpath","newpath","notebookpath","oldpath","outputfile","outputpath","path","paths","relativeworkspacepath","scriptpath","source","targetfile","uri"]}
var COMMANDS=new Set(known_tools_default.command)
var PATCHES=new Set(known_tools_default.patch)
var PATHS$2=new Set(known_tools_default.path)
function normalise(name) {
return /[^\x00-\x7f]/.test(name)?name:name.replace(/[-_. ]/g,"").toLowerCase()
}
function isOfMcpServer(tool) {
return /^mcp__.+?__.+$/.test(tool)
}
function takesCommand(tool) {
return !isOfMcpServer(tool)&&COMMANDS.has(normalise(tool))
}
function takesPatch(tool) {
return !isOfMcpServer(tool)&&PATCHES.has(normalise(tool))
}
function namesPath(argument) {
return PATHS$2.has(normalise(argument))
}
var HUNK=/^@@ -([0-9]{1,9}|\?)(?:,([0-9]{1,9}))? \+([0-9]{1,9}|\?)(?:,([0-9]{1,9}))? @@/
function countChangedLines(diff) {
let [added,removed,old,next]=[0,0,0,0]
for (const line of diff.split("\n")) if (old<=0&&next<=0) {
const header=HUNK.exec(line)
if (header) [old,next]=[Number(header[2]??1),Number(header[4]??1)]
} else if (line.startsWith("+")) [added,next]=[added+1,next-1]
else if (line.startsWith("-")) [removed,old]=[removed+1,old-1]
else if (!line.startsWith("\\")) [old,next]=[old-1,next-1]
return [added,removed]
}
function readDiff$1(diff) {
const lines=[]
let [oldLeft,nextLeft,old,next]=[0,0,0,0]
for (const line of diff.replace(/\n$/,"").split("\n")) {
const isInside=oldLeft>0||nextLeft>0
const header=isInside?null:HUNK.exec(line)
if (header) {
[oldLeft,nextLeft]=[Number(header[2]??1),Number(header[4]??1)];
[old,next]=[Number(header[1]),Number(header[3])]
lines.push({sort:"place",text:line,old:null,next:null})
} else if (line.startsWith("\\")||!isInside&&/^(?:--- |\+\+\+ |diff |index |\*\*\* )/.test(line)) lines.push({sort:"file",text:line,old:null,next:null})
else {
const sort=line.startsWith("+")?"added":line.startsWith("-")?"removed":!isInside&&line.startsWith("@")?"place":"same"
const hasMark=sort!=="place"&&(sort!=="same"||line.startsWith(" "))
const [isOld,isNext]=[sort==="removed"||sort==="same",sort==="added"||sort==="same"]
const number=(is,at)=>isInside&&is&&at>=0?at:null
lines.push({sort,text:hasMark?line.slice(1):line,old:number(isOld,old),next:number(isNext,next)})
if (isInside&&isOld) [old,oldLeft]=[old+1,oldLeft-1]
if (isInside&&isNext) [next,nextLeft]=[next+1,nextLeft-1]
}
}
return lines
}
function isDiff(text) {
return (text.startsWith("--- ")||text.startsWith("@@ ")||text.startsWith("diff "))&&text.includes("@@ ")
}
var UNKNOWN_CONSUMPTION={tokensIn:null,tokensOut:null,costUsd:null}
var addKnown=(one,other)=>one===null?other:other===null?one:one+other
var maxKnown=(one,other)=>one===null?other:other===null?one:Math.max(one,other)
function join(one,other,by) {
return {tokensIn:by(one.tokensIn,other.tokensIn),tokensOut:by(one.tokensOut,other.tokensOut),costUsd:by(one.costUsd,other.costUsd)}
}
function addConsumption(one,other) {
return join(one,other,addKnown)
}
function maxConsumption(one,other) {
return join(one,other,maxKnown)
}
var TOKENS_IN=[["tokens_in"],["input_tokens","cache_creation_input_tokens","cache_read_input_tokens","cache_writes","cache_reads"],["tokensIn","cacheWrites","cacheReads"],["inputTokens"]]
var TOKENS_OUT=[["tokens_out"],["output_tokens"],["tokensOut"],["outputTokens"]]
var COST=["cost_usd","cost","total_cost_usd"]
function readConsumption(used) {
const sum=groups=>{
for (const group of groups) {
const found=group.map(name=>asCount(used.get(name))).filter(count=>count!==null)
if (found.length) return found.reduce((one,other)=>one+other)
}
return null
}
const costUsd=COST.map(name=>asCost(used.get(name))).find(cost=>cost!==null)??null
return {tokensIn:sum(TOKENS_IN),tokensOut:sum(TOKENS_OUT),costUsd}
}
var EDIT_VERBS=["edited ","wrote ","added ","deleted "]
var CUT_FIELDS={"trigger.request":"asked","reasoning.analysis":"text","reasoning.reasoning":"thinking","outcome.error":"error"}
function hasHappened(status) {
return status!=="blocked"&&status!=="failure"
}
function isBookkeeping(step) {
const prefix=`${step.toolName}:${step.session}:`
const own=step.key.startsWith(prefix)?step.key.slice(prefix.length):step.key
return step.what==="note"&&(own.startsWith("read:")||own.endsWith(":launched"))
}
function isEdit(step) {
return step.what==="call"&&hasHappened(step.status)&&(step.lines!==null||hasEffect(step,EDIT_VERBS))
}
function isCommand(step) {
return step.what==="call"&&step.status!=="blocked"&&(hasEffect(step,["ran "])||takesCommand(step.call))
}
function hasEffect(step,beginnings) {
return step.sideEffects.some(effect=>beginnings.some(beginning=>effect.startsWith(beginning)))
}
var EMPTY={what:"unreadable",kind:"",id:"",chain:null,sequence:null,hash:"",signedBy:"",signedAt:"",own:false,at:null,toolName:"",session:"",agent:"",key:"",summary:"",asked:"",askedLeft:0,text:"",thinking:"",redacted:false,model:"",call:"",callId:"",arguments:null,result:null,diff:null,lines:null,status:"",error:"",sideEffects:[],authority:"",rule:"",durationMs:null,spent:UNKNOWN_CONSUMPTION,message:"",title:"",workspace:"",subagent:"",addition:null,more:null,sessionCost:null,cut:new Map(),calls:[],others:[]}
function promptOf({id,chain,sequence,hash,signedBy,signedAt,at,asked,askedLeft}) {
return {...EMPTY,what:"prompt",id,chain,sequence,hash,signedBy,signedAt,at,asked,askedLeft}
}
function unreadableStep(chain,words) {
return {...EMPTY,chain,summary:`this record cannot be read: ${words}`}
}
function readStep(record) {
const seal={chain:record.chain,hash:record.hash,signedBy:record.signed_by,signedAt:record.signed_at}
let content
try {
content=record.content
} catch (error) {
if (!(error instanceof BadInput)) throw error
return {...EMPTY,...seal,summary:`this record cannot be read: ${error.message}`}
}
const sections=["trigger","context","reasoning","authority","execution","outcome"].map(name=>asObject(content.get(name)))
const [trigger,context,reasoning,authority,execution,outcome]=sections
const environment=asObject(context.get("environment"))
const block=readBlock(content)
const what=stepKind(content,trigger,environment,block)
const calls=asList(execution.get("tool_calls")).map(asObject)
const call=asObject(calls[0])
const {diff,result,more}=splitResult(call,outcome,block!==null)
const status=asText(outcome.get("status"))
const agent=asText(context.get("agent_id"))
const slash=agent.indexOf("/")
const request=asText(trigger.get("request"))
const key=asText(block?.get("key"))
const cut=cutDigests(what,outcome,block)
const others=listOthers(sections,environment,cut)
if (what==="call") others.push(more)
if (what==="answer") others.push(reasoning.get("analysis"))
const followsPrompt=key.startsWith(`${asText(content.get("domain"))}:`)&&(reasoning.get("prompt_hash")??null)!==null
if (what!=="prompt"&&block!==null&&!followsPrompt) others.unshift(request)
return {...seal,what,kind:block?.size?asText(block.get("kind")):readKind(content),id:asText(content.get("id")),sequence:asCount(content.get("sequence")),own:block!==null,at:environment.get("time_known")===false?null:toUtc(trigger.get("timestamp"))??toUtc(environment.get("timestamp")),toolName:asText(content.get("domain")),session:asText(context.get("session_id")),agent:slash<0?"":agent.slice(slash+1),key,summary:asText(outcome.get("summary")),asked:what==="prompt"||block===null?request:"",askedLeft:0,text:what==="answer"&&asText(answerValue(outcome))||asText(reasoning.get("analysis")),thinking:asText(reasoning.get("reasoning")),redacted:environment.get("thinking_redacted")===true,model:asText(reasoning.get("model"))||asText(environment.get("model")),call:what==="call"?asText(call.get("tool")):"",callId:asText(environment.get("tool_call_id")),arguments:call.get("arguments")??null,result:result??null,diff:diff??null,lines:hasHappened(status)?changedLines(outcome,diff):null,status,error:asText(outcome.get("error"))||asText(call.get("error")),sideEffects:asTexts(outcome.get("side_effects")),authority:asText(authority.get("type")),rule:asText(authority.get("policy_reference")),durationMs:environment.get("duration_known")===false?null:asCount(execution.get("duration_ms"))||asCount(call.get("duration_ms"))||null,spent:readConsumption(asObject(execution.get("resources_used"))),message:block===null||!block.size?asText(environment.get("request_id")):"",title:asText(environment.get("title")),workspace:asText(environment.get("cwd")),subagent:asText(asObject(environment.get("subagent")).get("chain")),addition:readAddition(block,outcome),more:what==="call"?null:more??null,sessionCost:asCost(environment.get("session_cost_usd")),cut,calls,others:others.filter(value=>value!==void 0)}
}
function listOthers([trigger,context,reasoning,authority,execution,outcome],environment,cut) {
const found=[isTruthy(reasoning.get("options"))?reasoning.get("options"):reasoning.get("options_considered"),reasoning.get("selected_option"),trigger.get("user_id"),authority.get("approver"),authority.get("escalation_reason"),...asList(authority.get("chain")).map(entry=>isTruthy(asObject(entry).get("content"))?asObject(entry).get("content"):entry)]
for (const [name,value] of asObject(outcome.get("metrics"))) if (name!=="lines_added"&&name!=="lines_removed") found.push(name,value)
if (!isTruthy(context.get("session_id"))) {
found.push(trigger.get("source"),context.get("agent_id"),execution.get("resources_used"))
for (const [name,value] of environment) if (name!=="aver") found.push(value)
}
for (const [path,reference] of asObject(asObject(environment.get("aver")).get("whole"))) if (!cut.has(lookUp(CUT_FIELDS,path)??"")) found.push(reference)
return found
}
function stepKind(content,trigger,environment,block) {
if (block!==null&&isTruthy(asObject(block.get("refs")).get("adds_to"))) return "addition"
if (environment.has("unknown_record")) return "unknown"
const kind=content.get("type")
if (kind==="tool") return "call"
if (kind==="chat") {
if (block===null) return environment.get("role")==="user"?"prompt":"answer"
const key=block.get("key")??null
return key!==null&&key===trigger.get("correlation_id")?"prompt":"answer"
}
return kind==="workflow"?"session":"note"
}
function answerValue(outcome) {
const result=outcome.get("result")
return isObject(result)&&result.has("text")?result.get("text"):result
}
function splitResult(call,outcome,own) {
const kept=outcome.get("result")
const result=call.get("result")
if (own&&equalJson(kept??null,result??null)) return {diff:void 0,result,more:null}
if (own) {
const mapping=asObject(kept)
return {diff:mapping.get("diff"),result,more:mapping.has("more")?mapping.get("more"):mapping.has("diff")?null:kept}
}
if (typeof result==="string"&&(result.startsWith("--- ")||result.startsWith("@@ "))&&result.includes("@@ ")) return {diff:result,result:null,more:kept}
return {diff:null,result,more:kept}
}
function changedLines(outcome,diff) {
const metrics=asObject(outcome.get("metrics"))
const [added,removed]=[asCount(metrics.get("lines_added")),asCount(metrics.get("lines_removed"))]
if (added!==null&&removed!==null) return [added,removed]
if (typeof diff==="string") return countChangedLines(diff)
const counts=/\(\+([0-9]{1,9})\/-([0-9]{1,9})\)/.exec(asText(outcome.get("summary")))
return counts?[Number(counts[1]),Number(counts[2])]:null
}
function readAddition(block,outcome) {
const to=asText(asObject(block?.get("refs")).get("adds_to"))
if (!to) return null
const result=asObject(outcome.get("result"))
const ended=asObject(result.get("outcome"))
const says=asObject(result.get("says"))
const diff=says.get("diff")
return {to,via:asText(result.get("via")),differs:asTexts(result.get("differs")),says,lines:typeof diff==="string"?countChangedLines(diff):null,status:asText(ended.get("status")),error:asText(ended.get("error"))}
}
function cutDigests(what,outcome,block) {
const found=new Map()
const answer=what==="answer"?answerValue(outcome):null
if (isBlobReference(answer)) for (const {digest} of blobReferences(answer)) found.set("text",digest)
for (const [path,reference] of asObject(block?.get("whole"))) {
const name=lookUp(CUT_FIELDS,path)
for (const {digest} of blobReferences(reference)) if (name!==void 0&&(name!=="asked"||what==="prompt")) found.set(name,digest)
}
return found
}
function isBlobReference(value) {
return isObject(value)&&value.size===1&&isObject(value.get("blob"))&&!blobReferences(value).next().done
}
var ARGUMENTS_MAX=160
var SPACES=/[\t-\r\u001c- \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g
function toOneLine(text) {
return text.replace(SPACES," ").replace(/^ | $/g,"")
}
function plural$1(count,noun) {
return `${formatCount(count)} ${count===1?noun:`${noun}s`}`
}
function formatCount(count) {
return String(count).replace(/\B(?=(\d{3})+$)/g,",")
}
function totalFigures(session) {
const figures=[{words:plural$1(session.actions,"action"),sort:"call"}]
if (session.edits) figures.push({words:`${plural$1(session.edits,"edit")} (+${session.linesAdded}/-${session.linesRemoved})`,sort:"edit"})
const counted=[[session.commands,"command","command"],[session.failures,"failure","failure"],[session.denials,"denial","denial"],[session.subagents,"subagent","agent"],[session.unknown,"unknown record","unknown"],[session.unreadable,"unreadable record","unreadable"]]
for (const [count,noun,sort] of counted) if (count) figures.push({words:plural$1(count,noun),sort})
const tokens=tokensLabel(session.tokensIn,session.tokensOut)
if (tokens) figures.push({words:`tokens: ${tokens}`,sort:"spent"})
if (session.costUsd!==null) figures.push({words:formatMoney(session.costUsd),sort:"spent"})
for (const model of session.models) figures.push({words:model,sort:`model ${model}`})
figures.push({words:plural$1(session.records,"record"),sort:"record"})
if (session.imported) figures.push({words:"imported",sort:""})
return figures
}
function stepSummary(step) {
let summary=toOneLine(step.summary)||step.call||step.what
if (summary===step.call&&!isEmpty$1(step.arguments)) summary=`${summary}: ${shortenArguments(step.arguments)}`
return step.status==="blocked"?`denied: ${summary.replace(/ \(denied\)$/,"")}`:summary
}
function shortenArguments(given) {
const values=isObject(given)?[...given.values()]:[]
const commands=isObject(given)&&given.size===1?given.get("commands"):null
const only=Array.isArray(commands)&&commands.every(one=>typeof one==="string")?commands.join("; "):values.length===1?values[0]:null
const line=toOneLine(cutText(typeof only==="string"?only:valueText(given),320))
return codePoints(line)<=ARGUMENTS_MAX?line:`${cutText(line,159)}…`
}
function formatDuration(milliseconds) {
return milliseconds>=1e3?`${(milliseconds/1e3).toFixed(1)} s`:`${milliseconds} ms`
}
var REFUSED_BY={human_approved:"by a person",policy:"by a rule"}
function authorityLabel({authority,status,rule}) {
const words=status==="blocked"?lookUp(REFUSED_BY,authority)??"":authority==="unknown"?"":authority.replaceAll("_"," ")
return words&&rule?`${words} (${rule})`:words||rule
}
var DECISIONS={pass:"allowed",human_approved:"allowed by a person",human_review:"needs approval",skip:"denied",skipped:"denied, asked too often"}
function decisionLabel(decision) {
return lookUp(DECISIONS,decision)??decision
}
function consumptionLabel(spent) {
const cost=spent.costUsd===null?"":formatMoney(spent.costUsd)
return [tokensLabel(spent.tokensIn,spent.tokensOut),cost].filter(Boolean).join(", ")
}
function tokensLabel(wentIn,cameOut) {
return [wentIn===null?"":`${formatCount(wentIn)} in`,cameOut===null?"":`${formatCount(cameOut)} out`].filter(Boolean).join(", ")
}
function formatMoney(dollars) {
return dollars>=.01||dollars===0?`$${dollars.toFixed(2)}`:"<$0.01"
}
var UNNAMED_OUTPUTS=["stdout","output","content","text"]
var OUTPUTS=new Set([...UNNAMED_OUTPUTS,"stderr"])
function labelledTexts(value) {
if (Array.isArray(value)&&value.length&&value.every(isQueryResult)) return value.map(result=>{
const query=at(result,"query")
const name=at(result,"success")===true?query:`${query} (failed)`
const [output,error]=[at(result,"result")??null,valueText(at(result,"error")||"")]
const text=isEmpty$1(output)?"":valueText(output)
return {name,text:text.includes(error)?text:`${text}\n${error}`.replace(/^\n+|\n+$/g,""),isAside:false}
})
if (!isObject(value)||isBlobReference(value)) return isEmpty$1(value)?[]:[{name:"",text:valueText(value),isAside:typeof value!=="string"}]
const outputs=[...value].filter(entry=>typeof entry[1]==="string"&&(OUTPUTS.has(entry[0])||entry[1].trim().includes("\n")))
outputs.sort(([one],[other])=>Number(!UNNAMED_OUTPUTS.includes(one))-Number(!UNNAMED_OUTPUTS.includes(other)))
const texts=outputs.filter(([,text])=>text.trim()&&!outputs.some(([,other])=>other.trim().endsWith(`\n${text.trim()}`))).map(([name,text])=>({name:UNNAMED_OUTPUTS.includes(name)?"":name,text,isAside:false}))
const names=new Set(outputs.map(([name])=>name))
const rest=[...value].filter(([name,item])=>!names.has(name)&&!isEmpty$1(item)).map(([name,item])=>`${name.replaceAll("_"," ")} ${valueText(item)}`)
return rest.length?[...texts,{name:"",text:rest.join(", "),isAside:true}]:texts
}
function isQueryResult(value) {
return isObject(value)&&typeof value.get("query")==="string"&&typeof value.get("success")==="boolean"
}
function summaryExitCode(step) {
return /\(exit (\d+)\)/.exec(step.summary)?.[1]??""
}
function stepError(step) {
return step.error==="OUTCOME_UNKNOWN"||step.error.toLowerCase()===`exit code ${summaryExitCode(step)}`?"":step.error
}
function resultTexts(step,result) {
const error=step.error.trim()
let shown=result
if (isObject(shown)) {
const code=shown.get("exit_code")
if (code instanceof JsonNumber&&code.text===summaryExitCode(step)) shown=new Map([...shown].filter(([name])=>name!=="exit_code"))
}
if (isQueryResult(shown)) shown=new Map([...shown].filter(([name,value])=>name!=="success"&&name!=="query"&&!(name==="error"&&value===step.error)))
return labelledTexts(shown).filter(part=>!error||part.text.trim().replace(/^result /,"")!==error)
}
function isEmpty$1(value) {
return value===null||value===""||Array.isArray(value)&&!value.length||isObject(value)&&!value.size
}
function valueText(value) {
if (isBlobReference(value)) return `${at(value,"blob","size").text} bytes of ${String(at(value,"blob","media"))}, stored as a blob, sha256 ${String(at(value,"blob","digest"))}`
return typeof value==="string"?value:plainJson(value)
}
var INLINE_MAX=16384
var NO_OUTCOMES_REASON="no outcomes of this workspace are known yet"
function readDecision(record) {
const content=contentOf(record)
if (content===null||readKind(content)!=="gate.decision") return null
const result=at(content,"outcome","result")
const action=at(result,"action")
const policy=at(result,"policy")
const isWhole=isObject(result)&&isObject(action)&&(!isTruthy(policy)||isObject(policy))&&isObject(content.get("trigger"))
const texts=[at(result,"gate_id"),at(result,"decision"),at(result,"digest")]
const needed=["score","instruction_sha256","input_sha256"].every(name=>at(result,name)!==void 0)
if (!isWhole||!needed||texts.some(text=>typeof text!=="string")) return null
return {id:asText(content.get("id")),hash:record.hash,chain:record.chain,sequence:asCount(content.get("sequence")),signedBy:record.signed_by,at:asText(at(content,"trigger","timestamp")),callId:asText(result.get("call_id")),decision:asText(result.get("decision")),digest:asText(result.get("digest")),score:result.get("score")??null,interval:result.get("interval")??null,thresholds:result.get("thresholds")??null,reasons:asList(result.get("reasons")).map(valueText),rules:asList(at(policy,"rules")).map(valueText),tool:asText(action.get("tool")),arguments:asObject(action.get("arguments")),mode:asText(result.get("mode"))||"enforce",answer:asText(result.get("answer"))}
}
function refuses({decision}) {
return decision==="skip"||decision==="skipped"
}
function isObserved({mode}) {
return mode==="observe"
}
function shownReasons({reasons}) {
return reasons.filter(reason=>reason!==NO_OUTCOMES_REASON)
}
function refsOf(content) {
return [...asObject(readBlock(content)?.get("refs"))].filter(entry=>typeof entry[1]==="string")
}
var DecisionMatcher=class {
byCall=new Map()
byLikeness=new Map()
constructor(decisions,blob) {
this.blob=blob
for (const decision of decisions) {
const [table,key]=decision.callId.includes(":")?[this.byCall,decision.callId]:[this.byLikeness,matchKey(decision.tool,decision.arguments)]
table.set(key,[...table.get(key)??[],decision])
}
}
async take(step) {
if (!this.byCall.size&&!this.byLikeness.size) return null
const key=matchKey(step.call,await this.readArguments(step.arguments))
const suffix=`@${step.chain}`
const callId=step.key.endsWith(suffix)?step.key.slice(0,-suffix.length):step.key
const about=this.byCall.get(callId)
if (about?.length) {
const newestFirst=[...about].reverse()
const taken=newestFirst.find(found=>matchKey(found.tool,found.arguments)===key)??newestFirst[0]
this.byCall.set(callId,about.filter(decision=>decision.digest!==taken.digest))
return taken
}
return this.byLikeness.get(key)?.shift()??null
}
listUnmatched() {
return [...this.byLikeness.values(),...this.byCall.values()].flat().sort((one,other)=>compareCodePoints(one.chain??"",other.chain??"")||(one.sequence??0)-(other.sequence??0))
}
async readArguments(value) {
if (!isBlobReference(value)) return value
const [reference]=[...blobReferences(value)]
const data=reference===void 0?null:await this.blob(reference.digest)
try {
return data===null?value:nameLongTexts(readJson(data))
} catch (error) {
if (error instanceof BadInput) return value
throw error
}
}
}
function nameLongTexts(value) {
if (typeof value==="string") return byteLength(value)<=INLINE_MAX?value:`sha256 ${sha256Hex(value)}`
if (Array.isArray(value)) return value.map(nameLongTexts)
return isObject(value)?new Map([...value].map(([name,item])=>[name,nameLongTexts(item)])):value
}
function matchKey(tool,given) {
const values=asObject(replaceBlobs(given))
const command=takesCommand(tool)?commandLine(values):""
if (command) return `a command\n${command}`
const patch=takesPatch(tool)?["patch","input"].map(name=>values.get(name)).find(text=>typeof text==="string"):""
if (patch) return `a patch\n${patch}`
const without=new Map([...values].filter(([name])=>name!=="cwd"))
return `${tool.replace(/^mcp__/,"")}\n\n${asciiJson(without)}`
}
function replaceBlobs(value) {
if (isObject(value)) {
const [kept]=value.size===1&&value.has("blob")?[...blobReferences(value)]:[]
return kept?`sha256 ${kept.digest}`:new Map([...value].map(([name,item])=>[name,replaceBlobs(item)]))
}
return Array.isArray(value)?value.map(replaceBlobs):value
}
function commandLine(values) {
const command=isTruthy(values.get("cmd"))?values.get("cmd"):values.get("command")
if (typeof command==="string") return command
if (!Array.isArray(command)||!command.every(word=>typeof word==="string")) return ""
if (command.length===3&&["-lc","-c"].includes(command[1])) return command[2]
return command.map(word=>word===""?"''":/[^A-Za-z0-9_@%+=:,./-]/.test(word)?`'${word.replaceAll("'","'\"'\"'")}'`:word).join(" ")
}
var TELLING$1=["file_path","relpath","path","notebook_path","url","recipient","domain","query","pattern","name","id"]
var VERBS={file_read:"read",code_edit:"edit",file_delete:"delete",shell_exec:"run",api_request:"send"}
function webTarget(given) {
const domain=asText(given.get("domain"))
const path=["resource_id","path"].map(name=>given.get(name)).find(value=>typeof value==="string")
return domain&&path!==void 0?`${domain}/${asText(path).replace(/^\//,"")}`:""
}
function actionLine(action) {
const given=asObject(action.get("arguments"))
const command=commandLine(given)
if (command) return command
const type=asText(action.get("type"))
const files=asList(action.get("files")).map(asText).filter(Boolean)
const about=webTarget(given)||TELLING$1.map(name=>asText(given.get(name))).find(Boolean)||(files.length>1?`${files[0]} and ${files.length-1} more`:files[0]??"")
return [asText(action.get("tool"))||lookUp(VERBS,type)||type.replaceAll("_"," ")||"an action",about].filter(Boolean).join(" ")
}
var BATCH=500
var ActionItem=class extends Sealed {
constructor(canonical,{hash,computedHash,keys,at,findings}) {
super(canonical,{hash,signature:"",signature_pq:"",signed_at:at,signed_by:""})
this.adoptHash(computedHash)
this.keys=keys
this.findings=findings
}
get value() {
const fields=readJson(this.canonical)
const metadata=fields.get("metadata")
const said=name=>isObject(metadata)&&typeof metadata.get(name)==="string"?metadata.get(name):""
const type=String(fields.get("action_type"))
const call=new Map([["tool",said("tool_name")||type],["success",fields.get("success")]])
const words=said("description")||said("tool_name")||String(fields.get("action_id"))
return new Map([["type","tool"],["trigger",new Map([["timestamp",this.signed_at]])],["context",new Map([["environment",new Map([["aver",new Map([["kind","action"]])]])]])],["authority",new Map([["type",fields.get("gate_decision")??""]])],["execution",new Map([["tool_calls",[call]]])],["outcome",new Map([["status",fields.get("success")===true?"success":"failure"],["summary",`${type}: ${words}`],["result",fields]])]])
}
}
function* readActions(data) {
const tally=new Tally()
const judge=new ReceiptJudge(tally,{})
let batch=[]
for (const raw of readRawLines(data,ACTION_LINE_MAX)) {
const line=judge.take(raw)
const findings=tally.findings.splice(0)
tally.counts.clear()
if (line===null) batch.push(raw instanceof BadInput?raw:new Unreadable(findings[0]?.words??""))
else {
const {action,texts,receiptHash:hash,keys,problem}=line
const computedHash=problem===null?hash:keys===RECEIPT_KEY_COUNT?texts.receiptHash:""
batch.push(new ActionItem(new TextDecoder().decode(raw),{hash,computedHash,keys,at:action.timestamp,findings}))
}
if (batch.length<BATCH) continue
yield batch
batch=[]
}
yield batch
}
function readProof(data) {
const document=readJson(data)
if (!isObject(document)) throw new BadInput("a proof is an object")
const items=[]
const action=readAction(document.get("action"))
const {receiptHash}=encodeAction(action)
const hash=String(document.get("receipt_hash"))
items.push(new ActionItem(canonicalJson(actionFields(action)),{hash,computedHash:receiptHash,keys:RECEIPT_KEY_COUNT,at:action.timestamp,findings:[]}))
const seal=document.get("seal")
if (isObject(seal)) items.push(new Sealed(String(seal.get("canonical")),readSeal(seal,key=>new BadInput(`${key} must be a string`))))
return items
}
async function* readCap(packed,name) {
const archive=await readArchive(packed,new Set(MEMBER_ORDER),CAPSEAL_MEMBERS)
const actions=archive.members.get("actions.jsonl")??new Uint8Array()
if (isCapseal(archive)) {
for (const items of readActions(actions)) yield {chain:name,items}
return
}
const lines=readRawLines(actions,ACTION_LINE_MAX)
let last=name
for (const raw of readOwnLines(archive.members.get("capsules.jsonl")??new Uint8Array(),CAPSULE_LINE_MAX)) try {
if (raw instanceof BadInput) throw raw
const capsule=readCapsuleLine(readJson(raw))
last=capsule.chain
let action=null
if (capsule.hasAction) {
const line=lines.next().value
if (line instanceof Uint8Array) {
const read=readActionLine(line)
action=sealForm(read.action,read.texts)
}
}
yield {chain:last,items:[capsule.rebuild(action)]}
} catch (error) {
if (!(error instanceof BadInput)) throw error
yield {chain:last,items:[error]}
}
}
var SUMMARY_MAX=240
function text(value) {
if (typeof value==="string") return value
return value instanceof JsonNumber?value.text:""
}
function safeContent(record) {
try {
if (record instanceof ActionItem) return record.content
return record.canonical.isWellFormed()?readJson(record.canonical):void 0
} catch (error) {
if (error instanceof BadInput) return void 0
throw error
}
}
function statusOf(content) {
return content instanceof Map&&readKind(content)==="gate.decision"&&at(content,"outcome","result","mode")==="observe"?"observed":text(at(content,"outcome","status"))
}
function describeRow(item,place) {
const bare={place,sequence:"",hash:"",at:"",type:"",kind:"",summary:"",status:"",tool:"",authority:"",tokens:""}
if (item instanceof BadInput) return {...bare,problem:item.message}
const content=safeContent(item)
if (!(content instanceof Map)) return {...bare,hash:item.hash,at:item.signed_at,problem:"this is no capsule"}
const calls=at(content,"execution","tool_calls")
const sequence=content.get("sequence")
const usage=at(content,"execution","resources_used")
const request=text(at(content,"trigger","request"))
const summary=text(at(content,"outcome","summary"))||text(at(content,"reasoning","analysis"))||request
const [tokensIn,tokensOut]=["tokens_in","tokens_out"].map(name=>text(at(usage,name)))
return {place,sequence:isInteger(sequence)?sequence.text:"",hash:item.hash,at:text(at(content,"trigger","timestamp"))||item.signed_at,type:text(at(content,"type")),kind:readKind(content),summary:cutText(summary,SUMMARY_MAX),status:statusOf(content),tool:Array.isArray(calls)?text(at(calls[0],"tool")):"",authority:text(at(content,"authority","type")),tokens:tokensIn||tokensOut?`${tokensIn||0} → ${tokensOut||0}`:"",problem:""}
}
var COUNTED_MAX$1=2e5
var HELD_MAX$1=8
var OWN=new Set(["meta","keys"])
var ABORTED_KIND="protocol.session_aborted"
var AUDIT_KIND="protocol.verification_run_completed"
var KEEPING=/^(chain|key|bundle|run)\.|^(checkpoint|record|dropped|gate\.change)$/
var ASKING=new Set(["gate.decision","approval.request","act.preview"])
var DOING=new Set(["call","action","gate.decision","gate.outcome","approval.use","act.outcome"])
var ABOUT_CALLS=new Set(["gate","approval","act","action","protocol"])
var [DENIED,ASKED,DONE]=[1,2,4]
function stateOf$1(kind,status) {
if (status==="blocked") return kind===ABORTED_KIND?0:DENIED
if (status==="pending") return ASKING.has(kind)?ASKED:0
return (status==="success"||status==="failure")&&DOING.has(kind)?DONE:0
}
function isDenial({kind,status}) {
return stateOf$1(kind,status)===DENIED
}
function deedOf(content,kind) {
if (!ABOUT_CALLS.has(domainOf(kind))&&!refsOf(content).some(([name])=>name==="decision")) return ""
const id=text(at(content,"trigger","correlation_id"))
return id===at(content,"context","session_id")?"":id
}
async function countActivity(library) {
const days=new Map()
const deeds=new Map()
const audits=[]
let last=null
let records=0
let isCut=false
chains:for (const {id:chain} of library.chains) {
if (OWN.has(chain)) continue
let place=-1
for await (const items of library.readBatches(chain)) for (const item of items) {
place++
isCut=records>=COUNTED_MAX$1
if (isCut) break chains
records++
if (item instanceof BadInput) continue
const content=safeContent(item)
const time=text(at(content,"trigger","timestamp"))||item.signed_at
const [day,when]=[time.slice(0,10),Date.parse(time)||0]
if (!(content instanceof Map)||!/^\d{4}-\d\d-\d\d$/.test(day)||Number.isNaN(Date.parse(day))) continue
const sum=days.get(day)??{day,records:0,success:0,failure:0,blocked:0,tokens:0,cost:0}
days.set(day,sum)
sum.records++
const kind=readKind(content)
const status=statusOf(content)
if (status==="success"||status==="failure") sum[status]++
const usage=at(content,"execution","resources_used")
for (const name of ["tokens_in","tokens_out"]) sum.tokens+=asCount(at(usage,name))??0
sum.cost+=asCost(at(usage,"cost_usd"))??0
if (!KEEPING.test(kind)&&when>=(last?.when??0)) last={chain,row:describeRow(item,place),when}
if (kind==="protocol.verification_run_completed"&&status==="failure") audits.push({chain,row:describeRow(item,place)})
const state=stateOf$1(kind,status)
const id=deedOf(content,kind)
if (state===0||state===DONE&&!id) continue
const deed=deeds.get(id||`${chain}/${place}`)??{state:0}
deeds.set(id||`${chain}/${place}`,deed)
deed.state|=state
if (state!==DONE&&when>=(deed.when??0)) Object.assign(deed,{chain,row:describeRow(item,place),day,when})
}
}
const held=[...deeds.values()].filter(deed=>(deed.state&DENIED)>0||(deed.state&(ASKED|DONE))===ASKED)
for (const {day} of held) days.get(day).blocked++
held.sort((one,other)=>other.when-one.when)
return {days:sortDays(days),denials:held.slice(0,HELD_MAX$1),audits,last,records,isCut}
}
function sortDays(days) {
return [...days.values()].sort((one,other)=>one.day<other.day?-1:1).slice(-366)
}
var ApiError=class extends Error {
constructor(status,code,message,advice) {
super(advice?`${message} (${advice})`:message)
this.status=status
this.code=code
}
}
var ANSWER_MAX=64*1024**2
var SILENT_AFTER=12e4
var TRIES=4
var Api=class {
constructor(access) {
this.access=access
}
async ask(path,init={}) {
const headers={...init.headers,Authorization:`Bearer ${this.access.token}`}
for (let tried=1;; tried++) {
let answer
const signal=init.signal??AbortSignal.timeout(SILENT_AFTER)
try {
answer=await fetch(`${this.access.origin}/api/v1/${path}`,{...init,signal,headers,cache:"no-store",credentials:"omit",redirect:"error"})
} catch (error) {
if (error.name==="AbortError") throw error
throw unreachable()
}
if (answer.ok) return answer
if ((answer.status===429||answer.status===503)&&tried<TRIES) {
await new Promise(resolve=>setTimeout(resolve,250*2**tried))
continue
}
throw await readError(answer)
}
}
async bytes(path,limit=ANSWER_MAX,onHeaders) {
const answer=await this.ask(path)
onHeaders?.(answer.headers)
const parts=[]
let size=0
try {
for (const reader=answer.body.getReader();;) {
const {done,value}=await reader.read()
if (done) break
size+=value.length
if (size>limit) {
reader.cancel()
throw new NotJudged(`the server's answer is larger than ${limit/1024**2} MiB`)
}
parts.push(value)
}
} catch (error) {
if (error instanceof NotJudged) throw error
throw unreachable()
}
if (parts.length===1) return parts[0]
return new Uint8Array(await new Blob(parts).arrayBuffer())
}
async json(path) {
const text=new TextDecoder().decode(await this.bytes(path))
try {
return JSON.parse(text)
} catch {
throw new ApiError(200,"NOT_JSON","the server's answer is no JSON","Start it again: aver serve")
}
}
}
function unreachable() {
return new ApiError(0,"UNREACHABLE","the server does not answer","Start it again: aver serve")
}
async function readError(answer) {
let said={}
try {
said=await answer.json()
} catch {}
const text=(value,otherwise)=>typeof value==="string"?value:otherwise
const words=`the server says ${answer.status}`
if (answer.status===401) return new ApiError(401,text(said.code,""),"the server does not accept this page's token: each start of aver serve makes a new one; open the link that it printed last","")
return new ApiError(answer.status,text(said.code,""),text(said.message,words),text(said.advice,""))
}
function query(values) {
const given=Object.entries(values).filter(([,value])=>value!==null&&value!==void 0&&value!=="")
return given.length?`?${new URLSearchParams(given.map(([name,value])=>[name,String(value)]))}`:""
}
async function listApprovals(library,ring,now) {
const {ledger,tenant}=library.owner
const chain=library.chains.find(one=>domainOf(one.id)==="approvals")?.id
if (chain===void 0) return {cases:[],isCut:false}
const rules=plainRules(ring,library.verifier)
const cases=new Map()
let place=-1
let isCut=false
for await (const items of library.readBatches(chain)) {
await prepareRecords(rules,items.filter(item=>item instanceof Sealed))
for (const record of items) {
place++
if (record instanceof BadInput) continue
try {
if (record.kind==="approval.request"&&typeof record.content.get("id")==="string") {
const judge=new ChainJudge(rules,{chain,start:null})
judge.judge(record)
const failed=judge.tally.findings.find(finding=>finding.status==="failed")
const request=readRequest(record,ledger,tenant)
cases.set(request.id,{request,record,place,votes:[],newest:request.opened,problem:failed===void 0?"":`${failed.code}: ${failed.words}`,isSignerKnown:judge.signer!==null})
if (cases.size>500) {
const [oldest]=cases.keys()
const over=[...cases.values()].find(one=>one.request.expires<now)?.request.id
cases.delete(over??oldest)
isCut=true
}
} else if (record.kind==="approval.decision"||record.kind==="approval.use") {
const {about,vote}=readVote(record)
const found=cases.get(about)
found?.votes.push({vote,place})
if (found&&vote.at>found.newest) found.newest=vote.at
}
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
}
}
return {cases:[...cases.values()].reverse().map(found=>describe$1(found,chain,library.verifier,now)),isCut}
}
function describe$1({request,record,place,problem,isSignerKnown,votes,newest},chain,verifier,now) {
const state=computeState(request,votes.map(({vote})=>vote),verifier,now,newest)
return {id:request.id,chain,place,canonical:record.canonical,hash:record.hash,opened:request.opened,expires:request.expires,digest:request.digest,state:state.state,reason:state.reason,floor:state.floor,levels:request.levels,approvers:[...request.approvers.values()].map(({identity,key,custody})=>({identity,fingerprint:key.fingerprint,custody})),isSameAction:matchesAction(request),votes:votes.map(({vote,place:at})=>({at:vote.at,word:vote.word,approver:vote.approver??"",level:vote.level,place:at,problem:isByPerson(vote)?voteProblem(request,vote,verifier)?.join(": ")??"":""})),problem,isSignerKnown}
}
var LOST_AFTER=6e4
function assist(port,ed25519) {
port.onmessage=event=>{
const {id,texts,questions}=event.data
const asked=ed25519.prefetch(questions)
const hashes=texts.map(text=>sha3Hex(encoder.encode(text)))
asked.then(()=>{
const answers=questions.map(({publicHex,message,signature})=>ed25519.verify(publicHex,message,signature))
port.postMessage({id,hashes,answers})
})
}
}
var REST_MS=150
var REST_MAX=1e3
var REST_LOOK=50
var TASKS_EACH=4
var WorkerCrew=class {
waiting=new Map()
nextId=0
begun=0
restUntil=0
constructor(ports) {
this.ports=ports
this.size=ports.length
for (const port of ports) port.onmessage=event=>this.take(event.data)
}
get isBusy() {
return this.begun>=TASKS_EACH*this.size
}
rest() {
this.restUntil=performance.now()+REST_MS
}
async rested() {
for (let waited=0; performance.now()<this.restUntil&&waited<REST_MAX; waited+=REST_LOOK) await new Promise(resolve=>setTimeout(resolve,REST_LOOK))
}
async work(texts,questions) {
this.begun++
try {
return await this.ask(texts,questions)
} finally {
this.begun--
}
}
ask(texts,questions) {
const id=this.nextId++
const port=this.ports[id%this.size]
return new Promise((resolve,reject)=>{
const timer=setTimeout(()=>{
this.waiting.delete(id)
reject(new NotJudged("a worker was lost: it does not answer"))
},LOST_AFTER)
this.waiting.set(id,{resolve,reject,timer,sizes:[texts.length,questions.length]})
port.postMessage({id,texts,questions})
})
}
take({id,hashes,answers}) {
const waiting=this.waiting.get(id)
if (waiting===void 0) return
this.waiting.delete(id)
clearTimeout(waiting.timer)
if (hashes.length===waiting.sizes[0]&&answers.length===waiting.sizes[1]) waiting.resolve({hashes,answers})
else waiting.reject(new NotJudged("a worker gave another number of answers than it was asked for"))
}
}
var CLAIMS=["ended_at","signed_by","all_hashes_ok"]
async function changeChain(source,place,change) {
const document=JSON.parse(source)
const records=document.capsules
const record=records?.[place]
if (!records||!record) throw new NotJudged("only a record of a bundle's chain can be changed here")
const canonical=record["canonical"]??""
const middle=Math.floor(canonical.length/2)
const edited=canonical.replace(/"summary":"/,"\"summary\":\"(changed) ")
switch (change) {
case "flip":
record["canonical"]=canonical.slice(0,middle)+(canonical[middle]==="a"?"b":"a")+canonical.slice(middle+1)
break
case "edit":
record["canonical"]=edited
break
case "resign":
record["canonical"]=edited
record["hash"]=sha3Hex(encoder.encode(edited))
break
case "forge":
await forge(record,edited)
break
case "drop":
records.splice(place,1)
break
case "double":
records.splice(place,0,{...record})
break
case "swap":
if (place+1>=records.length) throw new NotJudged("this is the last record: there is no next one to swap it with")
records.splice(place,2,...records.slice(place,place+2).reverse())
break
case "cut":
records.length=place
break
case "rollback":
if (place===0) throw new NotJudged("this is the first record: nothing would be left")
records.length=place
shorten$1(document,records)
}
return JSON.stringify(document)
}
async function forge(record,text) {
const pair=await crypto.subtle.generateKey("Ed25519",true,["sign"])
const signer=toHex(await crypto.subtle.exportKey("raw",pair.publicKey)).slice(0,16)
const canonical=text.replaceAll(`"by":"${record["signed_by"]}"`,`"by":"${signer}"`)
const hash=sha3Hex(encoder.encode(canonical))
const signature=toHex(await crypto.subtle.sign("Ed25519",pair.privateKey,encoder.encode(hash)))
Object.assign(record,{canonical,hash,signature,signature_pq:"",signed_by:signer})
}
function toHex(bytes) {
return [...new Uint8Array(bytes)].map(byte=>byte.toString(16).padStart(2,"0")).join("")
}
var PAGE_FILES=/^(?:index\.html$|explorer\/)/
var BLOB_FILE=/^blobs\/(.+)$/
function shorten$1(claim,records) {
claim["length"]=records.length
claim["head_hash"]=records.at(-1)?.["hash"]??null
for (const name of CLAIMS) delete claim[name]
if (!records.some(({canonical=""})=>/"request":"(?!")/.test(canonical))) delete claim["title"]
}
async function rollBack(names,read,chain,place) {
const index=JSON.parse(await read("index.json"))
const claims=[...index.meta?[{...index.meta,id:"meta"}]:[],...index.chains??[]]
const documents=new Map()
for (const {id} of claims) documents.set(String(id),JSON.parse(await read(`${id}.json`)))
const signedAt=record=>record["signed_at"]??""
const target=documents.get(chain)?.capsules?.[place]
if (target===void 0) throw new NotJudged("only a record of a bundle's chain can be changed here")
if (place===0) throw new NotJudged("this is the first record: nothing would be left")
const moment=signedAt(target)
let meta=""
const kept=[]
const files=[["head.json",null]]
const texts=[]
const signers=new Set([index["fingerprint"]])
let total=0
for (const claim of claims) {
const id=String(claim["id"])
const document=documents.get(id)
const all=document.capsules??[]
const isLater=record=>id==="meta"?signedAt(record)>=moment:signedAt(record)>moment
const end=id===chain?place:claim["origin"]?meta.includes(`"${id}"`)?-1:0:all.findIndex(isLater)
const records=end<0?all:all.slice(0,end)
if (id==="meta") meta=records.map(record=>record["canonical"]).join("\n")
else total+=records.length
for (const record of records) {
texts.push(record["canonical"]??"")
signers.add(record["signed_by"])
}
if (records.length||!all.length) kept.push(claim)
if (records.length===all.length) continue
document.capsules=records
for (const one of [document,claim]) shorten$1(one,records)
files.push([`${id}.json`,records.length?JSON.stringify(document):null])
}
const known=texts.join("\n")
const blobs=names.filter(name=>BLOB_FILE.test(name))
const lost=blobs.filter(name=>!known.includes(BLOB_FILE.exec(name)?.[1]??""))
for (const name of [...lost,...names.filter(name=>PAGE_FILES.test(name))]) files.push([name,null])
if (typeof index["blobs"]==="number") index["blobs"]=blobs.length-lost.length
if (typeof index["capsule_count"]==="number") index["capsule_count"]=total
index.meta=kept.find(claim=>claim["id"]==="meta")??null
index.chains=kept.filter(claim=>claim["id"]!=="meta")
if (typeof index["chain_count"]==="number") index["chain_count"]=index.chains.length
for (const name of ["keys","pq_keys"]) if (index[name]) index[name]=Object.fromEntries(Object.entries(index[name]).filter(([signer])=>signers.has(signer)))
return [...files,["index.json",JSON.stringify(index)]]
}
var HELD_MAX=5e5
var GIVEN_MAX=5e4
var DIGITS=13
function shorten(hash) {
return [parseInt(hash.slice(0,DIGITS),16),parseInt(hash.slice(DIGITS,26),16)]
}
var DigestNotes=class {
noted=new Map()
count=0
add(chain,hash) {
if (this.count++>=HELD_MAX) return
const known=this.noted.get(chain)
if (known===void 0) this.noted.set(chain,shorten(hash))
else known.push(...shorten(hash))
}
get digests() {
return [...this.noted].map(([chain,numbers])=>[chain,new Float64Array(numbers)])
}
}
var HeldRecords=class {
given=new Map()
constructor(digests=[]) {
this.held=new Map(digests)
}
hold(digests) {
this.held=new Map(digests)
for (const [where,hash] of this.given) {
const [place="",chain=""]=where.split(/ (.*)/s)
if (!this.isSame(chain,Number(place),hash)) return `record ${place} of ${chain}`
}
return ""
}
async *check(chain,start,stop,batches) {
let place=start
for await (const items of batches) yield items.map(item=>this.take(chain,place++,item))
const judged=Math.min(stop,(this.held.get(chain)?.length??0)/2)
if (place<judged) yield Array.from({length:judged-place},()=>new NotFound("the server withholds this record, which it gave to be verified (v verifies again)"))
}
take(chain,place,item) {
if (!(item instanceof Sealed)||!item.canonical.isWellFormed()) return item
const where=`${place} ${chain}`
const before=this.given.get(where)??item.computedHash
this.given.set(where,before===item.computedHash?before:"")
if (this.given.size>GIVEN_MAX) this.given.delete(this.given.keys().next().value)
return this.isSame(chain,place,item.computedHash)?item:new Unreadable("the server gives another record here than it gave to be verified (v verifies again)")
}
isSame(chain,place,hash) {
const held=this.held.get(chain)
if (held===void 0||held.length<=2*place) return true
const [first,second]=shorten(hash)
return held[2*place]===first&&held[2*place+1]===second
}
}
var HeadWitness=class {
found=new Map()
last=new Map()
notes=new DigestNotes()
constructor(remembered) {
this.remembered=new Map(remembered)
}
take=(chain,place,hash)=>{
this.last.set(chain,{count:place+1,hash})
this.notes.add(chain,hash)
if (this.remembered.get(chain)?.count===place+1) this.found.set(chain,hash)
}
get heads() {
return [...this.last]
}
addTo(verdict,chains) {
const compared=[...this.remembered].filter(([chain])=>chains===null||chains.includes(chain))
if (!compared.length) return
const plain={name:"rollback",code:null,place:null,matters:false}
let grown=0
let first=true
for (const [chain,remembered] of compared) {
const actual=this.last.get(chain)??{count:0,hash:null}
if (actual.count===0&&chain.startsWith("import.")) continue
if (this.found.get(chain)===remembered.hash) {
grown+=Number(actual.count>remembered.count)
continue
}
const words=actual.count<remembered.count?`this browser remembers ${remembered.count} records of the chain ${chain}; ${actual.count} are here`:`this browser remembers another record of the chain ${chain} at this place`
const place={chain,sequence:Math.min(remembered.count-1,actual.count),source:null}
const finding={check:"rollback",status:"failed",code:"ROLLBACK",words,place,proof:{remembered,actual}}
verdict.findings.push(finding)
verdict.first_bad??=finding
verdict.status="failed"
if (first) verdict.checks.push({...plain,status:"failed",reason:words,code:"ROLLBACK",place,count:1,matters:true})
first=false
}
if (first) {
const reason=`${compared.length} chains have the records that this browser remembers; ${grown} have grown`
verdict.checks.push({...plain,status:"passed",reason,count:compared.length})
}
}
}
var PAGE$2=500
var EMPTY_MAX=100
var CHAINS_PAGE=500
var CHAINS_MAX=2e5
var BLOB_MAX$1=256*1024**2
var AHEAD=6
var AHEAD_BYTES_MAX=4*1024**2
var REFERENCE$1=/"blob":\{"alg":"sha256","digest":"([0-9a-f]{64})"(?:,"media":"[^"\\]*")?,"size":(\d{1,9})\}/g
var RECORD_BYTES=2e3
var LiveChainSource=class {
constructor(api,chain,stop,start=0,note=()=>{}) {
this.note=note
this.api=api
this.chain=chain
this.start=start
this.stop=stop
this.size=Math.max((stop-start)*RECORD_BYTES,1)
}
async read() {
throw new NotJudged("a ledger's chain is read by records")
}
async *entries() {
let empty=0
for (let at=this.start; at<this.stop&&empty<EMPTY_MAX;) {
const {entries,next}=await this.fetchPage(at,Math.min(at+PAGE$2,this.stop))
for (const entry of entries) {
const canonical=entry instanceof Map?entry.get("canonical"):void 0
if (typeof canonical==="string") this.note(canonical)
}
if (entries.length) yield entries
empty=entries.length?0:empty+1
at=next
}
}
async fetchPage(start,stop) {
const path=`chains/${encodeURIComponent(this.chain)}/records${query({start,stop})}`
let raw
let next=stop
try {
raw=await this.api.bytes(path,void 0,headers=>{
const given=Number(headers.get("Aver-Next"))
if (given>start&&given<stop) next=given
})
} catch (error) {
if (error instanceof ApiError&&error.status===404) return {entries:[],next:this.stop}
throw error
}
const entries=[]
for (let from=0; from<raw.length&&entries.length<stop-start;) {
const end=raw.indexOf(10,from)
const line=raw.subarray(from,end<0?raw.length:end)
from=end<0?raw.length:end+1
if (line.length) entries.push(readEntry(line))
}
return {entries,next}
}
}
function readEntry(line) {
try {
const entry=readJson(line)
if (entry instanceof Map&&entry.has("canonical_hex")) return new Unreadable("its bytes are not UTF-8")
return entry
} catch (error) {
if (error instanceof BadInput) return error
throw error
}
}
async function openBlob(api,digest,limit=BLOB_MAX$1) {
try {
return new MemorySource(await api.bytes(`blobs/${encodeURIComponent(digest)}`,limit))
} catch (error) {
if (error instanceof ApiError&&error.status===404) throw new NotFound(`there is no blob ${digest}`)
throw error
}
}
var BlobsAhead=class {
seen=new Set()
queue=[]
begun=new Map()
constructor(api) {
this.api=api
}
note=canonical=>{
if (!canonical.includes("\"blob\":{")) return
for (const [,digest,size] of canonical.matchAll(REFERENCE$1)) {
if (this.seen.has(digest)||Number(size)>AHEAD_BYTES_MAX) continue
this.seen.add(digest)
this.queue.push(digest)
}
this.fill()
}
async take(digest) {
const begun=this.begun.get(digest)
if (begun===void 0&&this.begun.size>=AHEAD) this.begun.delete(this.begun.keys().next().value)
this.begun.delete(digest)
this.seen.add(digest)
const source=await begun??await openBlob(this.api,digest)
this.fill()
return source
}
fill() {
while (this.begun.size<AHEAD&&this.queue.length) {
const digest=this.queue.shift()
this.begun.set(digest,openBlob(this.api,digest,AHEAD_BYTES_MAX).catch(()=>null))
}
}
}
var LiveDirectory=class LiveDirectory {
isLive=true
constructor(api,name,about,chains,keys,only=null) {
this.listedKeys=keys
this.api=api
this.blobs=new BlobsAhead(api)
this.name=name
this.about=about
this.chains=chains
this.only=only
}
static async fetch(access,name) {
const api=new Api(access)
const {keys}=await api.json("keys")
const isKey=key=>typeof key?.public_key==="string"
if (!Array.isArray(keys)||!keys.every(isKey)) throw new NotJudged("the server's list of keys is none")
return new LiveDirectory(api,name,await api.json("about"),await fetchChains(api),keys)
}
limitTo(chains) {
return new LiveDirectory(this.api,this.name,this.about,this.chains,this.listedKeys,new Set([...chains,"keys"]))
}
get keys() {
return this.listedKeys.map(key=>[key.public_key.slice(0,16),key.public_key])
}
get pqKeys() {
return this.listedKeys.flatMap(key=>key.public_key_pq?[[key.public_key.slice(0,16),key.public_key_pq]]:[])
}
get listed() {
return [...this.chains.values()].filter(chain=>this.only===null||this.only.has(chain.name))
}
async list(inside) {
return inside===void 0?[INDEX,...this.listed.map(chain=>`${chain.name}.json`)]:null
}
async open(...names) {
const [name="",inside]=names
if (inside!==void 0) return this.blobs.take(inside)
if (name==="index.json") return new MemorySource(encoder.encode(this.buildIndex()))
const chain=this.chains.get(name==="meta.json"?"meta":name.replace(/\.json$/,""))
if (chain===void 0) throw new NotFound(`there is no ${name}`)
return new LiveChainSource(this.api,chain.name,chain.count,0,this.blobs.note)
}
buildIndex() {
const claim=({name,count,head,origin})=>({id:name,length:count,head_hash:head,...origin&&origin!==name?{origin}:{}})
const meta=this.listed.find(chain=>chain.name==="meta")
return JSON.stringify({ledger:this.about.ledger,tenant:this.about.tenant,part:this.only!==null,meta:meta===void 0?null:claim(meta),chains:this.listed.filter(chain=>chain.name!=="meta").map(claim)})
}
}
function isChain(chain) {
return typeof chain?.name==="string"&&Number.isSafeInteger(chain.count)&&chain.count>=0
}
async function fetchChains(api) {
const chains=new Map()
for (let after=null;;) {
const page=await api.json(`chains${query({after,limit:CHAINS_PAGE})}`)
const known=chains.size
if (!Array.isArray(page.chains)||!page.chains.every(isChain)) throw new NotJudged("the server's list of chains is none")
for (const chain of page.chains) chains.set(chain.name,chain)
after=page.next??null
if (after===null) return chains
if (chains.size===known) throw new NotJudged("the server's list of chains has no end")
if (chains.size>=CHAINS_MAX) throw new NotJudged(`the ledger has more than ${CHAINS_MAX} chains; run: aver verify`)
}
}
function describeOther(name,beginning) {
const keys=firstKeys(beginning)
const has=(...names)=>names.every(key=>keys.includes(key))
const start=new TextDecoder("latin1").decode(beginning)
if (has("format","version","keys")&&/"format"\s*:\s*"aver-public-keys"/.test(start)) return `${name} is a list of public keys. It has no record to verify. Open the records, and choose this file on Keys, after you compared it with its owner.`
if (has("statement","payload","artifacts")) return `${name} is a participant's contribution to a trace. It is for the operator of the trace, who takes it by: aver protocol accept ${name}`
if (has("artifacts","checks","claims")) return `${name} is the report of an audit, without its records, so nothing in it can be checked. Open the bundle or the ledger that has the trace, or run: aver verify BUNDLE`
if (has("subject","status","first_bad","checks","findings")) return `${name} is a verdict that somebody wrote down. It proves nothing by itself: open the records that it is about.`
return null
}
var LISTED_MAX=5e4
var KEPT_MAX=5e3
var BLOB_MAX=16777216
var CHANGED_MAX=67108864
var Library=class Library {
thing=null
contents=null
live=null
keysAlong=new Map()
inner=null
kept=null
crew=null
held=new HeldRecords()
giveWay=async ()=>{}
constructor(ed25519) {
this.ed25519=ed25519
}
async open(thing) {
if (thing!==this.thing) this.held=new HeldRecords(thing.held)
this.thing=thing
this.contents=null
this.kept=null
this.inner=null
this.live=thing.live?await LiveDirectory.fetch(thing.live,thing.name):null
if (this.live!==null) this.contents=listLedger(thing.name,this.live)
else this.contents=thing.isFolder?await this.listBundle(thing):await this.listFile(thing)
this.keysAlong=new Map(this.contents.keys)
return this.contents
}
beside(giveWay) {
const {thing,contents,live,keysAlong,inner,held}=this
return Object.assign(new Library(this.ed25519),{thing,contents,live,keysAlong,inner,held,giveWay:()=>giveWay(()=>this.thing!==thing)})
}
async refresh() {
return this.open(this.opened)
}
get directory() {
if (this.live!==null) return this.live
if (this.inner!==null) return this.inner
const {name,files}=this.opened
return new FileMap(name,new Map(files.map(([path,blob])=>[path,new BlobSource(blob)])))
}
get opened() {
if (this.thing===null) throw new NotJudged("nothing is open")
return this.thing
}
get chains() {
return this.contents?.chains??[]
}
get owner() {
return {ledger:this.contents?.ledger??"",tenant:this.contents?.tenant??""}
}
get api() {
return this.live?.api??null
}
get verifier() {
return this.ed25519
}
async listBundle(thing) {
const bare={name:thing.name,format:"bundle",ledger:null,tenant:null,keys:[],pqKeys:[]}
try {
const index=await readIndex(this.directory)
const chains=index.chains.map(claim=>{
return {id:claim.id,title:claim.title??claim.id,tool:claim.tool||domainOf(claim.id),length:claim.length,head:claim.headHash,origin:claim.origin,startedAt:claim.startedAt??"",endedAt:claim.endedAt??"",signers:claim.signedBy??[]}
})
if (index.meta!==null) {
const {length,headHash,signedBy,startedAt,endedAt}=index.meta
chains.push({...bareChain("meta"),title:"heads of all chains",length,head:headHash,startedAt:startedAt??"",endedAt:endedAt??"",signers:signedBy??[]})
}
const keys=new Map(index.keys??[])
if (index.publicKey&&index.fingerprint) keys.set(index.fingerprint,index.publicKey)
return {...bare,...await readOwner(this.directory,index),isPart:index.isPart,chains,keys:[...keys],pqKeys:[...index.pqKeys??[]]}
} catch (error) {
if (error instanceof NotFound) throw new NotJudged(`${thing.name} is no bundle: it has no index.json. For a run or a ledger, run: aver verify ${thing.name}`)
if (!(error instanceof BadInput)) throw error
return {...bare,chains:[]}
}
}
async listFile(thing) {
const {name,source,format}=await this.recognise(thing)
if (format==="report") try {
this.inner=new FileMap(name,splitReport(await source.read(0,source.size)).files)
return {...await this.listBundle(thing),format}
} catch (error) {
if (!(error instanceof BadInput||error instanceof NotJudged)) throw error
}
const bare={name,keys:[],pqKeys:[]}
const listed=format==="cap"?await listCap(name,source):{format,chains:[{...bareChain(name),tool:format}]}
if (format==="report") listed.chains=[]
const [chain]=listed.chains
const first=chain===void 0?null:await this.readFirst(chain.id)
const named=at(first instanceof Sealed?safeContent(first):void 0,"context","environment","aver","chain")
const [id,ledger,tenant]=["name","ledger","tenant"].map(key=>text(at(named,key)))
if (chain!==void 0&&id&&format!=="cap") chain.id=id
return {...bare,...listed,ledger:ledger||null,tenant:tenant||null}
}
async recognise(thing) {
const [name,blob]=thing.files[0]
const source=new BlobSource(blob)
const beginning=await readStart(source,BEGINNING_BYTES)
const other=describeOther(name,beginning)
if (other!==null) throw new NotJudged(other)
const format=recogniseFile(name,beginning)
if (format===null) throw new NotJudged(`${name} is nothing that Aver can verify.`)
if (format==="elsewhere") throw new NotJudged(`A page cannot judge ${name}. Run: aver verify ${name}`)
return {name,source,format,opening:jsonOpening(beginning)}
}
async verify(keys,remembered,chains,progress) {
const thing=this.opened
const seen=new HeadWitness(remembered)
const ring=makeRing(keys)
const fits=new Map()
const signers=new Set()
const witness=(chain,place,record)=>{
seen.take(chain,place,record.hash)
signers.add(record.signed_by)
const isMatching=this.matchOwnKey(record,ring)
const [matching,others]=fits.get(record.signed_by)??[0,0]
if (isMatching!==null) fits.set(record.signed_by,isMatching?[matching+1,others]:[matching,others+1])
}
const options={ring,ed25519:this.ed25519,progress,witness,crew:this.crew,along:this.keysAlong}
const [name,blob]=thing.files[0]??["",new Blob()]
const verdict=thing.isFolder?await verifyDirectory(this.live!==null&&chains!==null?this.live.limitTo(chains):this.directory,options):await verifyFile(name,new BlobSource(blob),options)
seen.addTo(verdict,chains??(this.contents?.isPart?this.chains.map(({id})=>id):null))
if (thing.areCopies||thing.site) noteLimits(verdict,Boolean(thing.areCopies))
const [heads,held]=verdict.status==="failed"?[[],[]]:[seen.heads,this.live===null?[]:seen.notes.digests]
return {verdict,usesPlatform:this.ed25519.usesPlatform,heads,held,fits:[...fits],signers:[...signers].flatMap(name=>ring.lookup(name).map(key=>key.ed25519)),strangers:[...signers].filter(name=>!ring.lookup(name).length)}
}
async readFirst(chain) {
try {
for await (const items of this.readBatches(chain,0,1)) if (items[0]) return items[0]
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
return null
}
async change(chain,place,change) {
const thing=this.opened
const name=thing.isFolder?chain==="meta"?"meta.json":`${chain}.json`:thing.files[0]?.[0]??""
const file=thing.files.find(([path])=>path===name)?.[1]
if (file===void 0) throw new NotJudged(`there is no ${name} that could be copied`)
if (file.size>CHANGED_MAX) throw new NotJudged("this chain is too large to be copied into a page's memory")
if (change==="rollback"&&thing.isFolder) {
const inside=new Map(thing.files)
let size=0
const read=async path=>{
const found=inside.get(path)
if (found===void 0) throw new NotJudged(`there is no ${path} that could be copied`)
if ((size+=found.size)>CHANGED_MAX) throw new NotJudged("this bundle is too large to be copied into a page's memory")
return found.text()
}
return {files:(await rollBack([...inside.keys()],read,chain,place)).map(([path,text])=>[path,text===null?null:new Blob([text])])}
}
return {files:[[name,new Blob([await changeChain(await file.text(),place,change)])]]}
}
async rows(chain,start,stop) {
if (this.live!==null) {
const total=this.live.chains.get(chain)?.count??0
const rows=[]
const fill=end=>{
while (start+rows.length<end) rows.push(describeRow(new NotFound("this record is missing"),start+rows.length))
}
for await (const batch of this.readBatches(chain,start,stop)) for (const item of batch) {
const row=describeRow(item,start+rows.length)
if (Number(row.sequence)<Math.min(stop,total)) fill(Number(row.sequence))
rows.push({...row,place:start+rows.length})
}
fill(Math.min(stop,total))
return {rows,total,isMore:false,isCut:false}
}
if (this.kept?.chain!==chain) this.kept={chain,rows:[],items:[],rest:this.readBatches(chain)}
const {kept}=this
while (kept.rest!==null&&kept.rows.length<stop) {
const next=await kept.rest.next()
if (next.done) {
kept.rest=null
break
}
for (const item of next.value) kept.rows.push(describeRow(item,kept.rows.length))
kept.items=kept.items!==null&&kept.rows.length<=KEPT_MAX?[...kept.items,...next.value]:null
if (kept.rows.length>=LISTED_MAX) kept.rest=null
}
const isCut=kept.rows.length>=LISTED_MAX
if (isCut) kept.rows.length=LISTED_MAX
const claimed=Math.min(this.chains.find(one=>one.id===chain)?.length??0,LISTED_MAX)
const total=kept.rest===null?kept.rows.length:Math.max(kept.rows.length,claimed)
return {rows:kept.rows.slice(start,stop),total,isMore:kept.rest!==null,isCut}
}
keptItems(chain) {
return this.kept?.chain===chain&&this.kept.rest===null?this.kept.items:null
}
async records(chain,start,stop) {
const found=[]
let place=this.live===null?0:start
const known=this.keptItems(chain)
for await (const batch of known?[known]:this.readBatches(chain,start,stop)) for (const item of batch) {
if (place>=stop) return found
if (place>=start) found.push(describeText(item,place))
place++
}
return found
}
async blob(digest) {
const file=await this.directory.open("blobs",digest)
if (file.size>BLOB_MAX) throw new NotJudged(`the blob is larger than ${BLOB_MAX/1024**2} MiB, and is not shown`)
const data=await file.read(0,file.size)
if (sha256Hex(data)!==digest) throw new NotJudged(`the blob stored as ${digest} has other bytes`)
return data
}
async findRecord(chain,address) {
if (this.live!==null) {
const place="place" in address?address.place:Number(address.sequence)
for await (const batch of this.readBatches(chain,place,place+1)) if (batch[0]) return {item:batch[0],place}
return null
}
const isWanted=(item,place)=>"place" in address?place===address.place:item instanceof Sealed&&(item instanceof ActionItem?String(place):text(at(safeContent(item),"sequence")))===address.sequence
let place=0
const known=this.keptItems(chain)
for await (const batch of known?[known]:this.readBatches(chain)) {
const likely="sequence" in address?Number(address.sequence)-place:-1
if (batch[likely]!==void 0&&isWanted(batch[likely],place+likely)) return {item:batch[likely],place:place+likely}
for (const item of batch) {
if (isWanted(item,place)) return {item,place}
place++
}
}
return null
}
async record(chain,address,keys) {
const found=await this.findRecord(chain,address)
if (found===null) throw new NotJudged(`there is no such record in ${chain}`)
const {item,place}=found
if (item instanceof BadInput) throw new NotJudged(`this record cannot be read: ${item.message}`)
if (item instanceof ActionItem) return describeAction(item,place)
const ring=makeRing(keys)
const judge=new ChainJudge(plainRules(ring,this.ed25519),{chain,start:this.live===null?null:place})
judge.judge(item)
return {row:describeRow(item,place),canonical:item.canonical,hash:item.hash,computedHash:item.canonical.isWellFormed()?item.computedHash:"",signature:item.signature,signaturePq:item.signature_pq,signedAt:item.signed_at,signedBy:item.signed_by,previousHash:text(at(safeContent(item),"previous_hash")),findings:judge.tally.findings.map(({check,status,code,words})=>({check,status,code,words})),matchesOwnKey:this.matchOwnKey(item,ring)}
}
matchOwnKey(record,ring) {
if (ring.lookup(record.signed_by).length) return null
const key=this.keysAlong.get(record.signed_by)
return key===void 0||!record.signature||record.computedHash!==record.hash?null:this.ed25519.verify(key,record.hash,record.signature)
}
async *readBatches(chain,start=0,stop) {
await this.giveWay()
for await (const items of this.readStored(chain,start,stop)) {
yield items
await this.giveWay()
}
}
async *readStored(chain,start,stop) {
const thing=this.opened
if (this.live!==null) {
const count=this.live.chains.get(chain)?.count??0
const end=Math.min(stop??count,count)
const part=new LiveChainSource(this.live.api,chain,end,start)
if (start<end) yield* this.held.check(chain,start,end,keepRecords(readChainFile(part)))
return
}
if (thing.isFolder||this.inner!==null) {
yield* keepRecords(readChainFile(await this.directory.open(chain==="meta"?"meta.json":fileOf({id:chain}))))
return
}
const {source,format,opening}=await this.recognise(thing)
if (format==="chain") yield* keepRecords(readChainFile(source))
else if (format==="capsules") for await (const items of readCapsuleItems(source,opening)) yield items.map(({item})=>item)
else if (format==="cap") {
for await (const part of readCap(await readWhole(thing.name,source),thing.name)) if (part.chain===chain) yield part.items
} else if (format==="actions") yield* readActions(await readWhole(thing.name,source))
else if (format==="proof") yield readProof(await readWhole(thing.name,source))
}
}
function describeAction(item,place) {
const {canonical,hash,computedHash,findings,keys}=item
const unsigned={signature:"",signaturePq:"",signedAt:"",signedBy:"",matchesOwnKey:null}
const previousHash=text(at(item.content,"outcome","result","parent_receipt_hash"))
return {...unsigned,row:describeRow(item,place),canonical,hash,computedHash,previousHash,findings,receiptKeys:keys}
}
function bareChain(id) {
return {id,title:id,tool:domainOf(id),length:null,head:null,origin:null,startedAt:"",endedAt:"",signers:[]}
}
function listLedger(name,live) {
const chains=[...live.chains.values()].map(chain=>{
return {...bareChain(chain.name),tool:domainOf(chain.origin??chain.name),length:chain.count,head:chain.head,origin:chain.origin}
})
return {name,format:"ledger",ledger:live.about.ledger,tenant:live.about.tenant,chains,keys:live.keys,pqKeys:live.pqKeys}
}
async function* keepRecords(batches) {
for await (const items of batches) yield items.flatMap(item=>item instanceof Sealed||item instanceof BadInput?[item]:[])
}
async function listCap(name,source) {
const lengths=new Map()
let isPublic=false
try {
for await (const {chain,items} of readCap(await readWhole(name,source),name)) {
lengths.set(chain,(lengths.get(chain)??0)+items.length)
isPublic||=items[0] instanceof ActionItem
}
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
const chains=[...lengths.size?lengths:[[name,0]]].map(([chain,length])=>({...bareChain(chain),length}))
return {format:isPublic?"capseal":"cap",chains}
}
function describeText(item,place) {
const bare={place,canonical:"",hash:"",signature:"",signaturePq:"",signedAt:"",signedBy:"",problem:""}
if (item instanceof BadInput) return {...bare,problem:item.message}
const {canonical,hash}=item
if (item instanceof ActionItem) return {...bare,canonical,hash}
const {signature}=item
return {...bare,canonical,hash,signature,signaturePq:item.signature_pq,signedAt:item.signed_at,signedBy:item.signed_by}
}
function noteLimits(verdict,matters) {
const [name,reason]=matters?["page","the page judged its own copies in explorer/data, and cannot read the bundle's files to compare them"]:["unlisted_files","a web server does not tell whether it has files that this site does not list; this page shows none of them"]
verdict.checks.push({name,status:"not_checked",reason,code:null,place:null,count:0,matters})
if (matters&&verdict.status==="verified") verdict.status="qualified"
}
function makeRing(keys) {
return new Ring(keys.flatMap(({publicKey,publicKeyPq,entry})=>[new PublicKey(publicKey,publicKeyPq),...entry?[readRingEntry(readJson(entry))]:[]]))
}
// src/verify/uri.ts
var SCHEME="capsule://"
var URI_MAX=2048
var CHAIN=/^[A-Za-z0-9._-]+$/
var SEQUENCE=/^(?:0|[1-9][0-9]{0,18})$/
var SEQUENCE_END=2n**63n
var UUID=/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
var SEGMENT=/^(?:[A-Za-z0-9._!$&'()*+,;=:@-]|~[01]|%[0-9A-Fa-f]{2})+$/
function parseUri(text) {
const bad=why=>new BadInput(`not a capsule URI: ${text.slice(0,120)}: ${why}`)
if (!text.startsWith("capsule://")) throw bad(`it must begin with ${SCHEME}`)
if ([...text].length>URI_MAX) throw bad(`it is longer than ${URI_MAX} characters`)
const [rest="",...marked]=text.slice(10).split("#")
const fragment=marked.length?marked.join("#"):null
const problem=fragment===null?null:readFragment(fragment)
if (typeof problem==="string") throw bad(problem)
const slash=rest.indexOf("/")
const [chain,reference]=slash<0?[null,rest]:[rest.slice(0,slash),rest.slice(slash+1)]
if (chain!==null&&!CHAIN.test(chain)) throw bad("it has no chain name")
const place={chain,hash:null,sequence:null,id:null,fragment}
if (reference.startsWith("sha3_")) {
const hash=reference.slice(5)
if (!HEX64.test(hash)) throw bad("a hash has 64 lower-case hex digits")
return {...place,hash}
}
if (chain!==null) {
if (!SEQUENCE.test(reference)||BigInt(reference)>=SEQUENCE_END) throw bad("after the chain comes a sequence number or a hash")
return {...place,sequence:reference}
}
if (!UUID.test(reference)) throw bad(reference?"it names neither a hash (sha3_…) nor a UUID":"it names no record")
return {...place,id:reference}
}
function readFragment(fragment) {
const segments=[]
for (const raw of fragment.split("/")) {
if (!SEGMENT.test(raw)) return "its fragment has a segment that is none"
try {
segments.push(decodeURIComponent(raw).replaceAll("~1","/").replaceAll("~0","~"))
} catch {
return "its fragment is not percent-encoded UTF-8"
}
}
if (segments.includes(".")||segments.includes("..")) return "a fragment cannot walk upwards"
return CAPSULE_KEYS.includes(segments[0])?segments:"its fragment begins with no part of a capsule"
}
function resolveFragment(content,fragment) {
const segments=readFragment(fragment)
if (typeof segments==="string") return void 0
let value=content
for (const segment of segments) if (isObject(value)) value=value.get(segment)
else value=Array.isArray(value)&&SEQUENCE.test(segment)?value[Number(segment)]:void 0
return value
}
var REFERENCE=/capsule:\/\/(?:[A-Za-z0-9._-]+\/)?(?:sha3_[0-9a-f]{64}|[0-9a-f-]{36}|[0-9]{1,19})(?![0-9A-Za-z])(?:#[A-Za-z0-9._!$&'()*+,;=:@~%/-]*[A-Za-z0-9_])?/g
function splitReferences(text) {
const pieces=[""]
let end=0
for (const found of text.includes("capsule://")?text.matchAll(REFERENCE):[]) {
try {
parseUri(found[0])
} catch {
continue
}
pieces.push((pieces.pop()??"")+text.slice(end,found.index),found[0],"")
end=found.index+found[0].length
}
pieces.push((pieces.pop()??"")+text.slice(end))
return pieces
}
var LOOKED_MAX=2e5
async function locate(library,text) {
const uri=parseUri(text)
if (library.api!==null) return {found:await askServer(library,text,uri),isCut:false}
let looked=0
for (const {id:chain} of library.chains) {
if (uri.chain!==null&&chain!==uri.chain) continue
let place=-1
for await (const items of library.readBatches(chain)) {
for (const item of items) {
place++
if (isNamed(item,uri)) return {found:{chain,row:describeRow(item,place)},isCut:false}
}
if ((looked+=items.length)>=LOOKED_MAX) return {found:null,isCut:true}
}
}
return {found:null,isCut:false}
}
async function askServer(library,text,uri) {
let place
try {
place=await library.api?.json(`locate${query({ref:text})}`)??{chain:null,sequence:null}
} catch (error) {
if (error instanceof ApiError&&error.status===404) return null
throw error
}
const {chain,sequence}=place
if (typeof chain!=="string"||!Number.isSafeInteger(sequence)) throw new NotJudged("the server's answer names no record")
const start=sequence
for await (const [item] of library.readBatches(chain,start,start+1)) if (item!==void 0&&(uri.chain===null||uri.chain===chain)&&isNamed(item,uri)) return {chain,row:describeRow(item,start)}
throw new NotJudged(`the server says that it is record ${start} of ${chain}, and another record is there`)
}
function isNamed(item,{hash,sequence,id}) {
if (item instanceof BadInput) return false
if (hash!==null) return item.hash===hash
const content=safeContent(item)
return sequence!==null?text(at(content,"sequence"))===sequence:text(at(content,"id"))===id
}
var ENTRIES_MAX=2e4
async function listMeta(library) {
const here=new Map(library.chains.map(chain=>[claimedName(chain),chain]))
const entries=new Map()
let records=0
for await (const items of here.has("meta")?library.readBatches(META_CHAIN):[]) for (const item of items) {
records++
const content=item instanceof BadInput?void 0:safeContent(item)
if (item instanceof BadInput||!isObject(content)) continue
const kind=readKind(content)
const dropped=kind==="chain.drop"?at(content,"outcome","result","chains"):null
if (isObject(dropped)) for (const name of dropped.keys()) noteDrop(entries.get(name))
const found=new Map()
collectHeads(content,found,"","")
for (const {chain:name,count,hash} of found.values()) {
if (entries.size>=ENTRIES_MAX&&!entries.has(name)) continue
const listed=here.get(name)
entries.set(name,{chain:listed?.id??name,count:Number(count),hash,at:item.signed_at,kind,here:listed?.length??null})
}
}
const unrecorded=[...here.keys()].filter(name=>!entries.has(name)&&!RESERVED_CHAINS.has(name)).length
return {entries:[...entries.values()],records,unrecorded,isCut:entries.size>=ENTRIES_MAX}
}
function noteDrop(entry) {
if (entry!==void 0) entry.kind=DROP_KIND
}
async function listPasskeys(library) {
const {ledger,tenant}=library.owner
const chain=chainName("approvers",tenant)
const roster=new Roster(library.verifier,ledger,tenant)
if (chain===null||!library.chains.some(({id})=>id===chain)) return []
for await (const items of library.readBatches(chain)) for (const item of items) {
if (item instanceof BadInput) continue
try {
roster.apply(item,new Map())
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
}
return [...roster.approvers.values()].flatMap(({identity,key})=>{
return key instanceof Passkey?[{identity,fields:[["alg",key.alg],["public_key",key.publicKey],["rp_id",key.rpId],["credential",key.credential]]}]:[]
})
}
var TEXT_MEDIA="text/plain; charset=utf-8"
async function fetchBlobs(value,blob,most) {
if (Array.isArray(value)) return Promise.all(value.map(item=>fetchBlobs(item,blob,most)))
if (!isObject(value)) return value
if (!isBlobReference(value)) {
const members=[...value].map(async ([name,item])=>[name,await fetchBlobs(item,blob,most)])
return new Map(await Promise.all(members))
}
const size=at(value,"blob","size")
const media=at(value,"blob","media")
if (!(size instanceof JsonNumber)||size.value>most||media!==TEXT_MEDIA&&media!=="text/x-diff"&&media!=="application/json") return value
const data=await blob(String(at(value,"blob","digest")))
if (data===null) return value
if (media!=="application/json") return new TextDecoder().decode(data)
try {
return await fetchBlobs(readJson(data),blob,most)
} catch (error) {
if (error instanceof BadInput) return value
throw error
}
}
var TEXTS=["asked","text","thinking","error"]
async function fullTexts(step,blob) {
const {asked,text,thinking,error}=step
const whole={asked,text,thinking,error,cut:new Map(step.cut)}
await Promise.all(TEXTS.map(async name=>{
const digest=step.cut.get(name)
const data=digest===void 0?null:await blob(digest)
if (data===null) return
whole[name]=new TextDecoder().decode(data)
whole.cut.delete(name)
}))
return whole
}
async function fetchStep(step,blob,most) {
const [given,result,diff]=await Promise.all([step.arguments,step.result,step.diff].map(value=>fetchBlobs(value,blob,most)))
return {...step,...await fullTexts(step,blob),arguments:given??null,result:result??null,diff:diff??null}
}
var TEXT_MAX$2=65536
var DIGEST$1=/^(?:[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$/
var EFFECT_PATH=/^(?:edited|wrote|added|deleted|read|moved|copied|renamed) (.+)/s
async function readTexts(step,blob,lastAsked) {
const {asked,text,thinking,error}=await fullTexts(step,blob)
const parts=[step.summary,text,thinking,error,step.title,step.rule,step.model,...step.sideEffects]
if (step.own||step.asked!==lastAsked) parts.push(asked)
const paths=step.sideEffects.flatMap(effect=>EFFECT_PATH.exec(effect)?.[1]??[])
for (const call of step.calls) await collect$1(call.get("arguments"),blob,parts,paths)
const more=step.kind==="gate.decision"?at(step.more??void 0,"action"):step.more
const called=step.calls.flatMap(call=>[call.get("tool"),call.get("error"),call.get("result")])
for (const value of [...step.others,...called,step.diff,more,step.addition?.says]) await collect$1(value,blob,parts,null)
return {text:cutText([...new Set(parts)].filter(Boolean).join("\n"),TEXT_MAX$2),paths:cutText(paths.join("\n"),TEXT_MAX$2)}
}
async function collect$1(value,blob,parts,paths) {
const waiting=[[value,false]]
for (let size=0,next=waiting.pop(); next!==void 0&&size<=TEXT_MAX$2; next=waiting.pop()) {
const [item,isPath]=next
if (typeof item==="string") {
if (DIGEST$1.test(item)) continue
parts.push(item)
size+=item.length
if (isPath) paths?.push(item)
} else if (isBlobReference(item)) {
const found=at(item,"blob","media")==="text/x-diff"?item:await fetchBlobs(item,blob,TEXT_MAX$2)
if (found!==item) waiting.push([found,isPath])
} else if (isObject(item)) for (const [name,inner] of [...item].reverse()) waiting.push([inner,isPath||namesPath(name)])
else if (Array.isArray(item)) for (const inner of [...item].reverse()) waiting.push([inner,isPath])
}
}
var QUERY_MAX=1e3
var TERMS_MAX=32
var AROUND=60
var OUTCOME_WORDS=new Map([["denied","blocked"],["refused","blocked"],["failed","failure"],["ok","success"],["done","success"]])
var TERM=/(?:(?<name>tool|kind|outcome|path|since):)?(?:"(?<phrase>[^"]*)(?:"|$)|(?<word>[^\s"]+))(?<star>\*)?/gu
var LETTER="[\\p{L}\\p{N}\\p{Co}]"
var WORDS$2=new RegExp(`${LETTER}+`,"gu")
var UNIT_SECONDS={s:1,m:60,h:3600,d:86400,w:604800}
function parseQuery(given,now=Date.now()) {
if (codePoints(given)>QUERY_MAX) throw new BadInput(`a query has at most ${QUERY_MAX} characters (search for fewer words)`)
if (given.includes("\0")||!given.isWellFormed()) throw new BadInput("a query is text, and this one has characters that no text has")
const query={words:[],path:[],tool:[],kind:[],outcome:[],since:null,ignored:[]}
let count=0
for (const [whole,name="words",phrase,word,star] of given.matchAll(TERM)) {
if (++count>TERMS_MAX) throw new BadInput(`a query has at most ${TERMS_MAX} words and conditions (search for fewer words)`)
const text=(phrase??word.replace(/\*$/,"")).trim().replace(/\s+/g," ")
const isText=name==="words"||name==="path"
if (isText?!/[\p{L}\p{N}]/u.test(text):!text) query.ignored.push(whole)
else if (isText) query[name].push({text,isPrefix:star!==void 0||word?.endsWith("*")===true})
else if (name==="since") {
const since=parseMoment(text,now)
if (query.since===null||since>query.since) query.since=since
} else {
const value=text.toLowerCase()
query[name].push(name==="outcome"?OUTCOME_WORDS.get(value)??value:value)
}
}
if (count===query.ignored.length) throw new BadInput("the query has no word to search for (try: aver search \"permission denied\" tool:Bash)")
return query
}
function parseMoment(given,now) {
const [,number,unit=""]=/^([0-9]{1,6})([smhdw])$/.exec(given)??[]
const found=toUtc(number===void 0?given:new Date(now-Number(number)*1e3*(UNIT_SECONDS[unit]??0)).toISOString())
if (found!==null) return found
const quote=given.includes("'")?"\"":"'"
throw new BadInput(`${quote}${[...given].slice(0,80).join("").replaceAll("\\","\\\\")}${quote} is not a time: use 2026-05-31, 2026-05-31T09:00 or 2h (s, m, h, d, w) ago`)
}
function makeFilter(query) {
const [words,paths]=[query.words,query.path].map(terms=>terms.map(term=>patternOf({...term,text:fold(term.text)},"u")))
const isAny=(values,fits)=>!values.length||values.some(fits)
return {fitsStep:step=>{
const kind=step.kind||step.what
const outcome=(step.status||step.addition?.status||"").toLowerCase()
const names=[step.toolName,...step.calls.map(call=>asText(call.get("tool")))].map(name=>name.toLowerCase())
return isAny(query.tool,value=>names.includes(value))&&isAny(query.kind,value=>kind===value||kind.startsWith(`${value}.`))&&isAny(query.outcome,value=>outcome===value)&&(query.since===null||secondsOf(step.at??toUtc(step.signedAt))>=secondsOf(query.since))
},fitsTexts:({text,paths:named})=>{
const folded=words.length?fold(text):""
return words.every(word=>word.test(folded))&&(!paths.length||paths.some(path=>path.test(fold(named))))
}}
}
function secondsOf(moment) {
return moment===null?0:Math.max(0,Math.floor(Date.parse(moment)/1e3))
}
function fold(text) {
const lower=text.toLowerCase()
if (/^[\0-\x7f]*$/.test(lower)) return lower
return lower.replace(/[^\0-\x7f]/gu,letter=>/^([a-z])[\u0300-\u0331]$/.exec(letter.normalize("NFD"))?.[1]??letter).replace(/[\u0300-\u0331]/g,"").replaceAll("ς","σ")
}
function patternOf({text,isPrefix},flags) {
const words=(text.match(WORDS$2)??[]).join(`${LETTER.replace("[","[^")}+`)
return new RegExp(`(?<!${LETTER})${words}${isPrefix?"":`(?!${LETTER})`}`,flags)
}
function cutExcerpt(texts,{words:[word],path:[path]}) {
for (const [term,text] of [[word,texts.text],[path,texts.paths]]) {
const found=term===void 0?null:patternOf(term,"iu").exec(text)
if (found===null) continue
const [before,after]=[text.slice(0,found.index),text.slice(found.index+found[0].length)]
const parts=[before.slice(-60),found[0],after.slice(0,AROUND)].map(part=>part.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g,"").replace(/\s+/g," "))
return [`${before.length>AROUND?"… ":""}${parts[0]}`,parts[1],`${parts[2]}${after.length>AROUND?" …":""}`]
}
return null
}
var SEARCHED_MAX$1=2e5
async function search(library,given,limit,chains) {
const query=parseQuery(given)
const {fitsStep,fitsTexts}=makeFilter(query)
const hits=[]
let searched=0
for (const chain of chains??library.chains.map(({id})=>id)) {
let place=-1
let lastAsked=""
for await (const items of library.readBatches(chain)) {
for (const item of items) {
place++
searched++
if (item instanceof BadInput) continue
const step=readStep(item)
const asked=lastAsked
lastAsked=step.asked||asked
if (!fitsStep(step)) continue
const texts=await readTexts(step,readBlobOf(library),asked)
if (!fitsTexts(texts)) continue
hits.push({chain,row:describeRow(item,place),excerpt:cutExcerpt(texts,query)})
if (hits.length>=limit) return {hits,searched,isCut:true}
}
if (searched>=SEARCHED_MAX$1) return {hits,searched,isCut:true}
}
}
return {hits,searched,isCut:false}
}
async function readHit$1(library,chain,place,given) {
for await (const [item] of library.readBatches(chain,place,place+1)) {
if (item===void 0) continue
const row=describeRow(item,place)
if (item instanceof BadInput) return {chain,row,excerpt:null,hasHash:false}
return {chain,row,excerpt:cutExcerpt(await readTexts(readStep(item),readBlobOf(library),""),parseQuery(given)),hasHash:item.computedHash===item.hash}
}
return null
}
function readBlobOf(library) {
return digest=>library.blob(digest).catch(()=>null)
}
var OTHER_DOMAINS=new Set(["gate","actions","gateway","protocol","approvals",...RESERVED_CHAINS])
function isOfSession(name) {
return !OTHER_DOMAINS.has(name.replace(/^import\.[0-9a-f]{16}\./,"").split(".")[0])
}
function chainNames({main,agents,decisions}) {
return [main,...agents.map(([,chain])=>chain),decisions].filter(chain=>chain!==null)
}
function madeDomain({name,origin}) {
return splitChainName(origin===null?name:originalName(name,origin))[0]
}
async function groupChains(rows,readFirst,like=null) {
const found=rows.find(row=>row.name===like)
const domain=found===void 0?null:madeDomain(found)
const decisions=new Map()
const groups=new Map()
const strays=[]
for (const row of rows) {
const source=row.origin===null?"":readDigits(row.name)??"imported"
const rowDomain=madeDomain(row)
if (rowDomain==="gate") {
const first=await readFirst(row.name)
if (first?.session) decisions.set(`${source}\n${first.session}`,row.name)
} else if (!OTHER_DOMAINS.has(rowDomain)&&(domain===null||domain===rowDomain)) {
const place=identifyChain(row,await readFirst(row.name))
if (place===null) strays.push(row)
else {
const key=`${source}\n${place.tool}\n${place.session}`
const group=groups.get(key)??{...place,members:[]}
group.members.push([place.agent,row])
groups.set(key,group)
}
}
}
adoptStrays(strays,[...groups.values()])
return [...groups].map(([key,{tool,session,members}])=>{
const main=members.find(([agent])=>!agent)?.[1].name??null
return {tool,session,main,agents:members.filter(([,row])=>row.name!==main).map(([agent,row])=>[agent||row.name,row.name]),decisions:decisions.get(`${key.split("\n",1)[0]}\n${session}`)??null,imported:members.some(([,row])=>row.origin!==null)}
})
}
function adoptStrays(strays,groups) {
const mains=new Map()
for (const {members} of groups) for (const [agent,row] of members) if (!agent) mains.set(row.name,members)
for (const row of strays) for (let dot=row.name.lastIndexOf("."); dot>=0; dot=row.name.slice(0,dot).lastIndexOf(".")) mains.get(row.name.slice(0,dot))?.push([row.name.slice(row.name.lastIndexOf(".")+1),row])
}
function identifyChain(row,first) {
if (first===null) return null
const {toolName:tool,session,agent}=first
if (first.own) return first.key.startsWith(`${tool}:`)&&session!==""&&(row.origin||row.name)===sessionChainName(tool,session,agent)?{tool,session,agent}:null
if (row.origin===null||OTHER_DOMAINS.has(tool)||!tool) return null
return {tool,session:session||splitChainName(originalName(row.name,row.origin))[1],agent:""}
}
function sessionChainName(tool,session,agent="") {
return chainName(tool,(agent?[session,agent]:[session]).map(part=>{
return /^[A-Za-z0-9_-]{1,63}$/.test(part)&&!/^x-[0-9a-f]{32}$/.test(part)?part:`x-${sha256Hex(part).slice(0,32)}`
}).join("."))
}
function originalName(chain,origin) {
if (origin.includes(".")||RESERVED_CHAINS.has(origin)) return origin
let name=chain
for (let digits=readDigits(name); digits; digits=readDigits(name)) name=name.slice(`import.${digits}.`.length)
return name
}
function sessionOfFile(first,name) {
const {toolName:tool,session}=first
if (!tool||OTHER_DOMAINS.has(tool)||!session||first.own&&!first.key.startsWith(`${tool}:`)) return null
return {tool,session,main:name,agents:[],decisions:null,imported:false}
}
var TITLE_MAX=120
var TITLE_SOURCE_MAX=480
var COST_DIGITS=9
var CUMULATIVE_TOOLS=new Set(["codex"])
var LINE_END=/\r\n|[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/
var SessionCounter=class {
sum={prompts:0,actions:0,edits:0,linesAdded:0,linesRemoved:0,commands:0,failures:0,denials:0,gated:0,observed:0,unknown:0,unreadable:0,records:0}
spent=UNKNOWN_CONSUMPTION
growing=UNKNOWN_CONSUMPTION
sessionCost=null
title=""
firstPrompt=""
firstText=""
times=null
sealed=null
models=new Set()
openCalls=new Set()
byMessage=new Map()
lastAsked=""
add(step,isMain,decision) {
const {sum}=this
sum.records++
if (step.what==="unknown") sum.unknown++
if (step.what==="unreadable") sum.unreadable++
if (step.model) this.models.add(step.model)
if (!this.firstText&&(step.what==="call"||step.what==="answer")) this.firstText=toOneLine(cutText(step.summary||step.text||step.call,TITLE_SOURCE_MAX))
this.times=widenSpan(this.times,step.at)
this.sealed=widenSpan(this.sealed,step.signedAt)
this.addConsumption(step)
if (step.what==="call") this.addCall(step,decision)
else if (step.addition!==null&&this.openCalls.delete(step.addition.to)) {
if (step.addition.status==="failure") sum.failures++
if (step.addition.status==="blocked") sum.denials++
}
if (step.what==="prompt"&&step.own) sum.prompts++
else if (step.asked&&step.asked!==this.lastAsked) {
this.lastAsked=step.asked
sum.prompts++
}
if (!isMain) return
this.title=step.title||this.title
if (!this.firstPrompt&&step.asked) this.firstPrompt=step.asked.split(LINE_END).map(strip).find(Boolean)??""
}
addRecords(count) {
this.sum.records+=count
}
addConsumption(step) {
if (step.own||!step.message&&!CUMULATIVE_TOOLS.has(step.toolName)) this.spent=addConsumption(this.spent,step.spent)
else if (!step.message) this.growing=maxConsumption(this.growing,step.spent)
else this.byMessage.set(step.message,maxConsumption(this.byMessage.get(step.message)??UNKNOWN_CONSUMPTION,step.spent))
if (step.sessionCost!==null) this.sessionCost=Math.max(step.sessionCost,this.sessionCost??0)
}
addCall(step,decision) {
const {sum}=this
sum.actions++
if (decision!==null) sum.gated++
if (decision!==null&&isObserved(decision)) sum.observed++
if (isCommand(step)) sum.commands++
if (step.status==="failure") sum.failures++
if (step.status==="blocked") sum.denials++
if (step.status==="pending") this.openCalls.add(step.id)
if (isEdit(step)) {
sum.edits++
sum.linesAdded+=step.lines?.[0]??0
sum.linesRemoved+=step.lines?.[1]??0
}
}
finish(chains,left) {
let spent=addConsumption(this.spent,this.growing)
for (const each of this.byMessage.values()) spent=addConsumption(spent,each)
const costUsd=this.sessionCost??(spent.costUsd===null?null:Number(spent.costUsd.toFixed(COST_DIGITS)))
const [started,ended]=this.times??this.sealed??[null,null]
return {...this.sum,tool:chains.tool,session:chains.session,title:this.title||cutText(this.firstPrompt,TITLE_MAX)||cutText(this.firstText,TITLE_MAX),started,ended,denials:this.sum.denials+left.filter(decision=>refuses(decision)&&!isObserved(decision)).length,observed:this.sum.observed+left.filter(isObserved).length,tokensIn:spent.tokensIn,tokensOut:spent.tokensOut,costUsd,models:[...this.models],subagents:chains.agents.length,imported:chains.imported,chains:chainNames(chains)}
}
}
function widenSpan(ends,moment) {
if (!moment) return ends
if (ends===null) return [moment,moment]
return [compareCodePoints(moment,ends[0])<0?moment:ends[0],compareCodePoints(moment,ends[1])>0?moment:ends[1]]
}
var TEXT_MAX$1=600
var ASKED_MAX=1e5
var ASKED_LINES_MAX=200
var PROMPTS_MAX=8e6
async function readSession(chains,read,blob,report=()=>{}) {
const counter=new SessionCounter()
let records=0
const decisions=[]
for await (const batch of chains.decisions===null?[]:read(chains.decisions)) {
for (const item of batch) {
const decision=item instanceof BadInput?null:readDecision(item)
if (decision!==null) decisions.push(decision)
}
counter.addRecords(batch.length)
await report(records+=batch.length)
}
const matcher=new DecisionMatcher(decisions,blob)
const builder=new StoryBuilder(chains)
for (const chain of [chains.main,...chains.agents.map(([,name])=>name)]) {
if (chain===null) continue
let place=0
for await (const batch of read(chain)) {
for (const item of batch) {
const step=item instanceof BadInput?unreadableStep(chain,item.message):readStep(item)
const decision=step.what==="call"?await matcher.take(step):null
counter.add(step,chain===chains.main,decision)
builder.add(chain,place++,step,decision)
}
await report(records+=batch.length)
}
}
const left=matcher.listUnmatched()
return {totals:counter.finish(chains,left),entries:[...builder.build(left)]}
}
var StoryBuilder=class {
plans=new Map()
built=new Set()
constructor(chains) {
this.chains=chains
this.agents=new Map(chains.agents.map(([agent,chain])=>[chain,agent]))
for (const chain of [chains.main,...this.agents.keys()]) if (chain!==null) this.plans.set(chain,{steps:[],items:[],additions:new Map(),decisions:new Map(),ids:new Set(),last:"",isAsStored:false})
}
add(chain,place,step,decision) {
const plan=this.plans.get(chain)
plan.steps.push(lighten(step))
plan.isAsStored||=step.sequence!==place
plan.last=step.at??plan.last
if (step.addition!==null&&plan.ids.has(step.addition.to)) {
const {to}=step.addition
plan.additions.set(to,[...plan.additions.get(to)??[],place])
return
}
plan.ids.add(step.id)
plan.items.push({at:plan.last,place,decision:null})
if (decision!==null) plan.decisions.set(place,decision)
}
*build(unmatched) {
for (const {items} of this.plans.values()) items.sort((one,other)=>compareCodePoints(one.at,other.at)||one.place-other.place)
const [first]=this.plans.values()
first?.items.push(...unmatched.map(decision=>({at:decision.at,place:-1,decision})))
first?.items.sort((one,other)=>compareCodePoints(one.at,other.at))
if (this.chains.main!==null) yield* this.buildChain(this.chains.main,0)
for (const chain of this.agents.keys()) yield* this.buildSubagent(chain,1)
}
*buildChain(chain,depth) {
this.built.add(chain)
const plan=this.plans.get(chain)
const bare={depth,chain,place:-1,step:null,decision:null,additions:[],agent:""}
const inOrder=plan.isAsStored?[...plan.items.filter(item=>item.decision!==null),...plan.steps.map((_,place)=>({at:"",place,decision:null}))]:plan.items
let asked=""
for (const {place,decision} of inOrder) {
const step=plan.steps[place]
if (decision!==null||step===void 0) {
yield {...bare,decision}
continue
}
if (!step.own&&step.asked&&step.asked!==asked) {
asked=step.asked
yield {...bare,place,step:promptOf(step)}
if (step.what==="prompt") continue
}
const additions=plan.isAsStored?[]:plan.additions.get(step.id)??[]
const whole=applyAdditions(step,additions.map(one=>plan.steps[one]))
yield {...bare,place,step:whole,decision:plan.decisions.get(place)??null,additions}
if (this.agents.has(step.subagent)) yield* this.buildSubagent(step.subagent,depth+1)
}
}
*buildSubagent(chain,depth) {
if (this.built.has(chain)) return
yield {depth,chain,place:-1,step:null,decision:null,additions:[],agent:this.agents.get(chain)??""}
yield* this.buildChain(chain,depth)
}
}
async function fetchPrompts(entries,blob,isWanted) {
const whole=[]
let kept=0
for (const entry of entries) {
const {step}=entry
if (step===null||step.what!=="prompt"||!step.cut.has("asked")) {
whole.push(entry)
continue
}
isWanted()
const {asked,cut}=kept<PROMPTS_MAX?await fullTexts(step,blob):step
const prompt=cut.has("asked")?{asked,askedLeft:null}:keepPrompt(asked)
kept+=prompt.asked.length
whole.push({...entry,step:{...step,...prompt}})
}
return whole
}
function keepPrompt(whole) {
const asked=cutText(whole,ASKED_MAX).split("\n",ASKED_LINES_MAX).join("\n")
const left=whole.slice(asked.length).replace(/^\n/,"")
return {asked,askedLeft:left?left.split("\n").length:0}
}
function lighten(step) {
return {...step,summary:step.what==="call"||step.summary?cutText(stepSummary({...step,status:""}),TEXT_MAX$1):"",...keepPrompt(step.asked),text:cutText(step.text,TEXT_MAX$1),thinking:cutText(step.thinking,TEXT_MAX$1),error:cutText(step.error,TEXT_MAX$1),arguments:null,result:null,diff:null,more:null,calls:[],others:[],addition:step.addition===null?null:{...step.addition,says:new Map()}}
}
function applyAdditions(step,additions) {
let whole=step
for (const later of additions) {
const {addition}=later
if (addition!==null) {
if (whole.status==="pending"&&addition.status) whole={...whole,status:addition.status,error:addition.error}
const lines=whole.lines??(hasHappened(whole.status)?addition.lines:null)
const [result,diff]=[whole.result??addition.says.get("result")??null,whole.diff??addition.says.get("diff")??null]
whole={...whole,result,diff,lines}
}
whole={...whole,thinking:whole.thinking||later.thinking,text:whole.text||later.text,redacted:whole.redacted||later.redacted,model:whole.model||later.model,authority:whole.authority==="unknown"?later.authority:whole.authority,rule:whole.rule||later.rule,durationMs:whole.durationMs??later.durationMs,spent:addConsumption(whole.spent,later.spent),cut:new Map([...later.cut,...whole.cut])}
}
return whole
}
async function listSessions(library) {
return groupChains(library.chains.map(({id,origin})=>({name:id,origin})),async chain=>{
const first=await library.readFirst(chain)
return first instanceof Sealed?readStep(first):null
})
}
async function countSession(library,session) {
let workspace=""
const read=async function* (chain) {
for await (const items of library.readBatches(chain)) {
for (const item of items) {
if (item instanceof BadInput) continue
item.chain=chain
workspace||=findWorkspace(item)
}
yield items
}
}
const blob=digest=>library.blob(digest).catch(()=>null)
const {totals,entries}=await readSession(session,read,blob)
let risk=null
for (const {decision} of entries) {
const score=decision?.score
if (score instanceof JsonNumber&&Number.isFinite(score.value)) risk=Math.max(risk??0,score.value)
}
return {...totals,risk,workspace}
}
function findWorkspace(record) {
if (!/"(?:cwd|workspace)":/.test(record.canonical)) return ""
const environment=at(safeContent(record),"context","environment")
const action=at(safeContent(record),"outcome","result","action")
return text(at(environment,"cwd"))||text(at(environment,"workspace"))||text(at(action,"workspace"))
}
function checkStatements(text,pinned,along,ed25519) {
const values=readJson(text)
const others=new Ring(along.flatMap(([key,second])=>toKey(key,second)))
return (Array.isArray(values)?values:[]).map(value=>checkOne(value,pinned,others,ed25519))
}
function toKey(key,second) {
try {
return [new PublicKey(key,second)]
} catch (error) {
if (error instanceof BadInput) return []
throw error
}
}
function checkOne(value,pinned,along,ed25519) {
let statement
try {
statement=readStatement(value)
} catch (error) {
if (!(error instanceof BadInput)) throw error
return {purpose:"",by:[],state:"no statement"}
}
const {purpose}=statement
const by=statement.signatures.map(signature=>signature.by)
if (!by.length) return {purpose,by,state:"invalid"}
const results=checkStatement(statement,pinned,ed25519)
if (results.some(result=>result.outcome==="invalid")) return {purpose,by,state:"invalid"}
if (results.every(result=>result.outcome==="valid")) return {purpose,by,state:"pinned"}
const second=checkStatement(statement,along,ed25519)
if (second.some(result=>result.outcome==="invalid")) return {purpose,by,state:"does not match"}
return {purpose,by,state:second.every(result=>result.outcome==="valid")?"came along":"unknown"}
}
var REPORT_EVERY=250
function send(answer) {
self.postMessage(answer)
}
async function answer(opening,request,giveWay) {
const {id}=request
try {
const library=await opening
send({id,type:"done",result:await carryOut(giveWay?library.beside(giveWay):library,request)})
} catch (error) {
const isKnown=error instanceof BadInput||error instanceof NotJudged||error instanceof ApiError
send({id,type:"failed",words:error.message,isNotJudged:isKnown})
}
}
async function carryOut(library,request) {
switch (request.type) {
case "assist":
assist(request.port,library.verifier)
return null
case "crew":
library.crew=request.ports.length?new WorkerCrew(request.ports):null
return null
case "hold":return library.held.hold(request.held)
case "open":return library.open(request.thing)
case "refresh":return library.refresh()
case "rows":return library.rows(request.chain,request.start,request.stop)
case "records":return library.records(request.chain,request.start,request.stop)
case "blob":return library.blob(request.digest)
case "figures":return countSession(library,request.session)
case "sessions":return listSessions(library)
case "search":return search(library,request.words,request.limit,request.chains??null)
case "locate":return locate(library,request.uri)
case "hit":return readHit$1(library,request.chain,request.place,request.words)
case "approvals":return listApprovals(library,makeRing(request.keys),request.now)
case "statements":return checkStatements(request.text,makeRing(request.keys),request.along,library.verifier)
case "passkeys":return listPasskeys(library)
case "meta":return listMeta(library)
case "activity":return countActivity(library)
case "change":return library.change(request.chain,request.place,request.change)
case "record":return library.record(request.chain,request.at,request.keys)
case "verify":{
let reported=0
return library.verify(request.keys,request.remembered,request.chains,progress=>{
const now=Date.now()
if (now-reported<REPORT_EVERY) return
reported=now
send({id:request.id,type:"progress",progress})
})
}
}
}
var ALIVE_EVERY=5e3
var SCANS=new Set(["search","locate","sessions","figures","activity","approvals","passkeys","meta"])
var NEWEST$1=new Set(["search","locate"])
var WORK_MS$1=20
function startWorker$1() {
const opening=openEd25519().then(ed25519=>new Library(ed25519))
let queue=Promise.resolve()
const newest=new Map()
const makeWay=({id,type})=>{
let since=performance.now()
return async isClosed=>{
if (performance.now()-since>WORK_MS$1) {
await new Promise(resolve=>setTimeout(resolve))
for (let seen=null; seen!==queue; await queue) seen=queue
since=performance.now()
}
if (isClosed()) throw new NotJudged("another thing was opened")
if (NEWEST$1.has(type)&&newest.get(type)!==id) throw new NotJudged(`a newer ${type} was begun`)
}
}
setInterval(()=>send({id:0,type:"alive"}),ALIVE_EVERY)
self.addEventListener("message",({data:request})=>{
if (request.type==="rest") opening.then(library=>library.crew?.rest())
else if (request.type==="hold") answer(opening,request)
else if (SCANS.has(request.type)) {
newest.set(request.type,request.id)
queue.then(()=>answer(opening,request,makeWay(request)))
} else queue=queue.then(()=>answer(opening,request))
})
}
var n$1
var t$2
var r$2
var u$2
var i$2
var f$2
var o$2
var e$2
var l$2
var c$2
var a$2
var h$3=Symbol.for("pv")
var p$3={}
var y$3=[]
var v$2=/^m(i|n|o|s|text|space)$/
var w$3=Array.isArray
var d$3=y$3.slice
var _$2=Object.assign
function g$3(n) {
n&&n.parentNode&&n.remove()
}
function k$2(n,t,r) {
var u,i,f,o={},e=arguments.length
for (f in t) "key"==f?u=t[f]:"ref"==f&&"function"!=typeof n?i=t[f]:o[f]=t[f]
return e>2&&(o.children=e>3?d$3.call(arguments,2):r),m$3(n,o,u,i,null)
}
function m$3(r,u,i,f,o) {
var e={type:r,props:u,key:i,ref:f,__k:null,__:null,__b:0,__e:null,__c:null,constructor:h$3,__v:o||++t$2,__i:-1,__u:0}
return !o&&n$1.vnode&&n$1.vnode(e),e
}
function $(n) {
return n.children
}
function x$1(n,t) {
this.props=n,this.context=t,this.__g=0
}
function S$1(n,t) {
if (null==t) return n.__&&S$1(n.__,n.__i+1)
for (var r; t<n.__k.length; t++) if ((r=n.__k[t])&&r.__e) return r.__e
return "function"!=typeof n.type||n.props.__P?null:S$1(n)
}
function C$1(t) {
var r,u=t.__v,i=u.__e,f=[],o=[],e=t.__P
e&&((r=_$2({constructor:h$3},u)).__v=u.__v+1,n$1.vnode&&n$1.vnode(r),z$1(e,r,u,t.__n,e.namespaceURI,32&u.__u?[i]:null,f,i||S$1(u),32&u.__u,o),r.__v=u.__v,r.__.__k[r.__i]=r,E$1(f,r,o),u.__=u.__e=null,r.__e!=i&&j$1(r))
}
function j$1(n) {
if ((n=n.__)&&n.__c&&!n.props.__P) return n.__e=null,n.__k.some(function(t) {
return t&&(n.__e=t.__e)
}),j$1(n)
}
function L(t) {
(8&t.__g||(t.__g|=8,u$2.push(t),f$2++))&&i$2==n$1.debounceRendering||((i$2=n$1.debounceRendering)||queueMicrotask)(H)
}
function H() {
try {
for (var n,t=1; u$2.length;) u$2.length>t&&u$2.sort(o$2),n=u$2.shift(),t=u$2.length,8&n.__g&&C$1(n)
} finally {
(f$2=u$2.length)&&(i$2||queueMicrotask)(H)
}
}
function I(n,t,r,u,i,f,o,e,l,c,a) {
var s,h,v,w,d,_,g=u.__k||y$3,k=t.length
for (l=q(r,t,g,l,k),s=0; s<k; s++) null!=(v=r.__k[s])&&(h=~v.__i&&g[v.__i]||p$3,v.__i=s,_=z$1(n,v,h,i,f,o,e,l,c,a),w=v.__e,(h.ref!=v.ref||8&h.__u)&&(h.ref&&G$1(h.ref,null,v,h),v.ref&&a.push(v.ref,v.__c||w,v)),d=d||w,4&v.__u?(l=A$2(v,l,n,!h.__v),h.__e&&(h.__e=null)):"function"==typeof v.type&&void 0!==_?l=_:w&&(l=w.nextSibling),v.__u&=-21)
return r.__e=d,l
}
function q(n,t,r,u,i) {
var f,o,e,l,c,a,s,p,y,v=r.length,d=v,_=0,g=0,k=n.__k=Array(i)
for (f=0; f<i; f++) null!=(o=t[f])&&"boolean"!=typeof o&&"function"!=typeof o?("object"!=typeof o||o.constructor===String?o=k[f]=m$3(null,o):w$3(o)?o=k[f]=m$3($,{children:o}):o.constructor===h$3&&o.__b?o=k[f]=m$3(o.type,o.props,o.key,o.ref,o.__v):k[f]=o,l=f+_,o.__=n,o.__b=n.__b+1,e=null,~(c=o.__i=P(o,r,l,d))&&(d--,(e=r[c])&&(e.__u|=2)),e&&e.__v?(o.__u|=16,c==l-1?_--:c==l+1?_++:c!=l&&(c>l?_--:_++,g=1)):(~c||(i>v?_--:i<v&&_++),"function"!=typeof o.type&&(o.__u|=4))):k[f]=null
if (g) {
for (a=[],s=[],f=0; f<i; f++) if ((o=k[f])&&16&o.__u) {
for (_=0,p=a.length; _<p;) a[y=_+p>>1]<o.__i?_=y+1:p=y
a[_]=o.__i,s[f]=_+1
}
for (_=a.length; f--;) s[f]&&(s[f]==_?_--:k[f].__u|=4)
}
if (d) for (f=0; f<v; f++) !(e=r[f])||2&e.__u||(e.__e==u&&(u=S$1(e)),J(e,e))
return u
}
function A$2(n,t,r,u) {
var i,f,o,e
if ("function"==typeof n.type) {
if (n.props.__P) return t
if (i=n.__k) for (f=0; f<i.length; f++) i[f]&&(i[f].__=n,t=A$2(i[f],t,r,!1))
return t
}
for (t&&!t.parentNode&&(t=S$1(n))&&!t.parentNode&&(t=null),o=n.__e,e=t; e&&8==e.nodeType;) e=e.nextSibling
for (o!=e&&(!u&&r.moveBefore&&o.parentNode?r.moveBefore(o,t):r.insertBefore(o,t||null)),t=o; (t=t&&t.nextSibling)&&8==t.nodeType&&!t.data.startsWith("$s"););
return t
}
function P(n,t,r,u) {
var i,f=n.key,o=n.type,e=t[r],l=e&&!(2&e.__u)
if (null===e&&null==f||l&&f==e.key&&o==e.type) return r
if (u>(l?1:0)) {
for (i=r-1; i>=0; i--) if ((e=t[i])&&!(2&e.__u)&&f==e.key&&o==e.type) return i
for (i=r+1; i<t.length; i++) if ((e=t[i])&&!(2&e.__u)&&f==e.key&&o==e.type) return i
}
return -1
}
function T$1(n,t,r) {
r??="","-"==t[0]?n.setProperty(t,r):n[t]=r
}
function N(n,t,r,u,i) {
var f,o
if ("style"==t) if ("string"==typeof r) n.style.cssText=r
else {
if ("string"==typeof u&&(n.style.cssText=u=""),u) for (t in u) r&&t in r||T$1(n.style,t)
if (r) for (t in r) u&&r[t]==u[t]||T$1(n.style,t,r[t])
}
else if ("o"==t[0]&&"n"==t[1]) "function"!=typeof r&&(r=null),"function"!=typeof u&&(u=null),(n.__e||(n.__e={}))[t]=r,r&&u||(o=a$2[t]||(a$2[t]=V(t)),(n.__a||(n.__a={}))[t]=c$2,f=t!=(t=t.replace(l$2,"$1")),(t=t.slice(2))[0]<"a"&&(t=t.toLowerCase()),r?n.addEventListener(t,o,f):n.removeEventListener(t,o,f))
else {
if ("http://www.w3.org/2000/svg"==i) t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,"s")
else if ("width"!=t&&"height"!=t&&"href"!=t&&"list"!=t&&"form"!=t&&"tabIndex"!=t&&"download"!=t&&"rowSpan"!=t&&"colSpan"!=t&&"role"!=t&&"popover"!=t&&t in n) try {
n[t]=null==r?"":r
return
} catch (n) {}
if ("function"==typeof r) return
null==r||!1===r&&"-"!=t[4]?n.removeAttribute(t):n.setAttribute(t,"popover"==t&&1==r?"":r)
}
}
function V(t) {
return function(r) {
var u=this.__e
if (u) {
if (u=u[t],null==r[e$2]) r[e$2]=c$2++
else if (r[e$2]<this.__a[t]) return
return u(n$1.event?n$1.event(r):r)
}
}
}
function z$1(t,r,u,i,f,o,e,l,c,a) {
var s,p,v,d,k,b,m,M,C,j,L,H,q,A,O,P,T,N,V=r.type
if (r.constructor!==h$3) return null
128&u.__u&&(c=32&u.__u,s=u.__c.__z)&&(r.__u|=c,p=o=[],8==s.nodeType?l=B$1(s,o):o.push(s),l=o[0]||l),(s=n$1.__b)&&s(r)
n:if ("function"==typeof V) {
v=e.length
try {
if (M=r.props,C=(s=V.prototype)&&s.render,j=(s=V.contextType)&&i[s.__c],L=s?j?j.props.value:s.__:i,(d=u.__c)?(r.__c=d,2&d.__g&&(d.__g|=1)):(C?r.__c=d=new V(M,L):(r.__c=d=new x$1(M,L),d.constructor=V,d.render=K),j&&j.sub(d),d.state||(d.state={}),d.__n=i,d.__g|=8,d.__h=[],d.__k=[]),C&&(d.__s||(d.__s=d.state),V.getDerivedStateFromProps&&(d.__s==d.state&&(d.__s=_$2({},d.__s)),_$2(d.__s,V.getDerivedStateFromProps(M,d.__s)))),k=d.props,b=d.state,d.__v=r,u.__c) {
if (M!==k&&C&&!V.getDerivedStateFromProps&&d.componentWillReceiveProps&&d.componentWillReceiveProps(M,L),r.__v==u.__v&&!(8&d.__g)||!(4&d.__g)&&d.shouldComponentUpdate&&!1===d.shouldComponentUpdate(M,d.__s,L)) {
r.__v!=u.__v&&(d.props=M,d.state=d.__s,d.__g&=-9),r.__e=u.__e,r.__k=u.__k,r.__k.some(function(n) {
n&&(n.__=r)
}),y$3.push.apply(d.__h,d.__k),d.__k=[],d.__h.length&&e.push(d),l=S$1(u)
break n
}
d.componentWillUpdate&&d.componentWillUpdate(M,d.__s,L),C&&d.componentDidUpdate&&d.__h.push(function() {
d.componentDidUpdate(k,b,m)
})
} else C&&!V.getDerivedStateFromProps&&d.componentWillMount&&d.componentWillMount(),C&&d.componentDidMount&&d.__h.push(d.componentDidMount)
d.context=L,d.props=M,d.__P=t,d.__g&=-5,H=n$1.__r,q=C?25:0
do
d.__g&=-9,H&&H(r),s=d.render(d.props,d.state=d.__s,d.context)
while (8&d.__g&&++q<25)
C&&(y$3.push.apply(d.__h,d.__k),d.__k=[]),d.state=d.__s,d.getChildContext&&(i=_$2({},i,d.getChildContext())),C&&u.__c&&d.getSnapshotBeforeUpdate&&(m=d.getSnapshotBeforeUpdate(k,b)),A=s&&s.type===$&&null==s.key?s.props.children:s,M.__P&&(s=l,f=(t=M.__P).namespaceURI,c=o=null,u.props&&u.props.__P!=t&&(u.__k.some(function(n) {
n&&J(n,n)
}),u.__k=null),l=u.__k?S$1(u,0):null),l=I(t,w$3(A)?A:[A],r,u,i,f,o,e,l,c,a),M.__P&&(r.__e=null,l=s),r.__u&=-161,p&&p.some(g$3),d.__h.length&&e.push(d),1&d.__g&&(d.__g&=-4)
} catch (t) {
if (e.length=v,r.__v=null,c||o) if (t&&t.then) {
if (r.__u|=128|c,o) {
for (~(T=o.indexOf(l||void 0))||(T=o.length); (N=o[T-1])&&8==N.nodeType;) T--
for (; T<o.length; T++) if (N=o[T]) if (o[T]=null,O) {
if (N==P) break
} else {
if (8!=N.nodeType) break
N.data.startsWith("$s")&&(P=B$1(O=N))
}
}
if (!O) {
for (; l&&8==l.nodeType&&l.nextSibling;) l=l.nextSibling
O=l
}
(s=B$1(O=r.__c.__z||(r.__c.__z=O)))?(r.__e=O,l=s):r.__e=l,l=l&&l.nextSibling
} else o&&o.some(g$3)
else r.__e=u.__e
r.__k||(r.__k=u.__k||[]),t&&t.then||D$1(r),n$1.__e(t,r,u)
}
} else l=r.__e=F$2(u.__e,r,u,i,f,o,e,c,a,t)
return (s=n$1.diffed)&&s(r),l
}
function B$1(n,t) {
if (n&&8==n.nodeType&&n.data.startsWith("$s")) for (var r=1; n=n.nextSibling;) {
if (8==n.nodeType) {
if (n.data.startsWith("$s")) r++
else if (n.data.startsWith("/$s")&&!--r) return n
}
t&&t.push(n)
}
}
function D$1(n) {
n&&(n.__c&&(n.__c.__g|=4),n.__k&&n.__k.some(D$1))
}
function E$1(t,r,u) {
for (var i=0; i<u.length;) G$1(u[i++],u[i++],u[i++])
n$1.__c&&n$1.__c(r,t),t.some(function(r) {
try {
t=r.__h,r.__h=[],t.some(function(n) {
n.call(r)
})
} catch (t) {
n$1.__e(t,r.__v)
}
})
}
function F$2(t,r,u,i,f,o,e,l,c,a) {
var s,h,y,_,k,b,m,M,$=u.props||p$3,x=r.props,C=r.type
if ("svg"==C?f="http://www.w3.org/2000/svg":"math"==C?f="http://www.w3.org/1998/Math/MathML":f||(f="http://www.w3.org/1999/xhtml"),o) {
for (s=0; s<o.length; s++) if ((k=o[s])&&(C?k.localName==C:3==k.nodeType)) {
t=k,o[s]=null
break
}
}
if (!t) {
if (M=a.ownerDocument||document,!C) return M.createTextNode(x)
t=M.createElementNS(f,C,x.is?x:a),l&&(n$1.__m&&n$1.__m(r,o),l=!1),o=null
}
if (C) {
if (a="template"==C&&t.content||t,o="textarea"==C&&null!=x.defaultValue?null:o&&d$3.call(a.childNodes),!l&&o) for ($={},s=0; s<t.attributes.length; s++) $[(k=t.attributes[s]).name]=k.value
for (s in $) k=$[s],"dangerouslySetInnerHTML"==s?y=k:"children"==s||s in x||"value"==s&&"defaultValue" in x||"checked"==s&&"defaultChecked" in x||N(t,s,null,k,f)
for (s in x) k=x[s],"children"==s?_=k:"dangerouslySetInnerHTML"==s?h=k:"value"==s?b=k:"checked"==s?m=k:l&&"function"!=typeof k||$[s]===k||N(t,s,k,$[s],f)
h?(l||y&&(h.__html==y.__html||h.__html==t.innerHTML)||(t.innerHTML=h.__html),r.__k=[]):(y&&(t.textContent=""),("foreignObject"==C||"http://www.w3.org/1998/Math/MathML"==f&&v$2.test(C))&&(f="http://www.w3.org/1999/xhtml"),I(a,w$3(_)?_:[_],r,u,i,f,o,e,o?o[0]:u.__k&&S$1(u,0),l,c),o&&o.some(g$3)),l&&"textarea"!=C||(s="value","progress"==C&&null==b?t.removeAttribute(s):null==b||b===t[s]&&("progress"!=C||b)||N(t,s,b,$[s],f),s="checked",null!=m&&m!=t[s]&&N(t,s,m,$[s],f))
} else $===x||l&&t.data==x||(t.data=x)
return t
}
function G$1(t,r,u,i) {
try {
"function"==typeof t?r?r.__x=t(r)||1:i&&(i=i.__c||i.__e)&&(r=i.__x)&&(i.__x=null,"function"==typeof r?r():t(null)):t.current=r
} catch (t) {
n$1.__e(t,u)
}
}
function J(t,r,u) {
var i,f,o,e
if (n$1.unmount&&n$1.unmount(t),!(i=t.ref)||i.current&&i.current!=t.__e||G$1(i,null,r,t),i=t.__c) {
if (i.componentWillUnmount) try {
i.componentWillUnmount()
} catch (t) {
n$1.__e(t,r)
}
i.__P=i.__n=null
}
if (i=t.__k) for (e=0; e<i.length; e++) i[e]&&J(i[e],r,"function"!=typeof t.type||u&&!t.props.__P)
!u&&(i=t.__c)&&(i=i.__z)&&(f=B$1(i,o=[]))&&(i==t.__e&&o.some(g$3),g$3(f),g$3(i)),u||g$3(t.__e),t.__e=t.__c=t.__=null
}
function K(n,t,r) {
return this.constructor(n,r)
}
function Q(t,r) {
var u,i,f,o
n$1.__&&n$1.__(t,r),9==r.nodeType&&(r=r.documentElement),i=(u=t&&32&t.__u)?null:r.__k,r.__k=m$3($,{children:[t]}),f=[],o=[],z$1(r,r.__k,i||p$3,p$3,r.namespaceURI,i?null:r.firstChild?d$3.call(r.childNodes):null,f,i?i.__e:r.firstChild,u,o),E$1(f,r.__k,o),r.__k.props.children=null
}
n$1={__e:function(n,t,r,u) {
for (var i,o,e; t=t.__;) if ((i=t.__c)&&!(1&i.__g)) {
i.__g|=4
try {
if ((e=(o=i.constructor)&&o.getDerivedStateFromError)&&i.setState(o.getDerivedStateFromError(n)),i.componentDidCatch&&(i.componentDidCatch(n,u||{}),e=1),e&&8&i.__g) return void (i.__g|=2)
} catch (t) {
n=t
}
}
throw f$2=0,n
}},t$2=0,r$2=function(n) {
return null!=n&&n.constructor===h$3
},x$1.prototype.setState=function(n,t) {
var r=this.__s
r&&r!=this.state||(r=this.__s=_$2({},this.state)),"function"==typeof n&&(n=n(_$2({},r),this.props)),n&&(_$2(r,n),this.__v&&(t&&this.__k.push(t),L(this)))
},x$1.prototype.forceUpdate=function(n) {
this.__v&&(this.__g|=4,n&&this.__h.push(n),L(this))
},x$1.prototype.render=$,u$2=[],f$2=0,o$2=function(n,t) {
return n.__v.__b-t.__v.__b
},e$2=Symbol(),l$2=/(PointerCapture)$|Capture$/i,c$2=0,a$2={}
var t$1
var r$1
var u$1
var i$1
var o$1=Object.is
var f$1=0
var c$1=[]
var e$1=[]
var a$1=n$1
var v$1=a$1.__b
var l$1=a$1.__r
var m$2=a$1.diffed
var h$2=a$1.__c
var s$1=a$1.unmount
var p$2=a$1.__
function y$2(n,t) {
a$1.__h&&a$1.__h(r$1,n,f$1||t),f$1=0
var u=r$1.__H||(r$1.__H={__:[],__h:[]})
return n>=u.__.length&&u.__.push({}),u.__[n]
}
function d$2(n) {
return f$1=1,_$1(G,n)
}
function _$1(n,u,i) {
var f=y$2(t$1++,2)
if (f.t=n,!f.__c&&(f.__=[i?i(u):G(void 0,u),function(n) {
var t=(f.__N||f.__)[0],r=f.t(t,n)
o$1(t,r)||(f.__N=[r,f.__[1]],f.__c.setState({}))
}],f.__c=r$1,!r$1.__f)) {
r$1.__f=!0
var c=r$1.shouldComponentUpdate
r$1.shouldComponentUpdate=function(n,t,r) {
var u=this.__H
if (!u) return !0
var i=!1,f=this.props!=n
if (u.__.some(function(n) {
n.__N&&(i=!0,o$1(n.__[0],n.__N[0])||(f=!0))
}),c) {
var e=c.call(this,n,t,r)
return i?e||f:e
}
return !i||f
}
}
return f.__
}
function A$1(n,u) {
var i=y$2(t$1++,3)
!a$1.__s&&E(i.__H,u)&&(i.__P=!0,i.__=n,i.u=u,r$1.__H.__h.push(i))
}
function F$1(n,u) {
var i=y$2(t$1++,4)
!a$1.__s&&E(i.__H,u)&&(i.__P=!1,i.__=n,i.u=u,r$1.__h.push(i))
}
function T(n) {
return f$1=5,w$2(function() {
return {current:n}
},[])
}
function w$2(n,r) {
var u=y$2(t$1++,7)
return E(u.__H,r)&&(u.__=n(),u.__H=r),u.__
}
function b$2(n,t) {
return f$1=8,w$2(function() {
return n
},t)
}
function O$1(n) {
var u=y$2(t$1++,10),i=d$2()
return u.__=n,r$1.componentDidCatch||(r$1.componentDidCatch=function(n,t) {
u.__&&u.__(n,t),i[1](n)
}),[i[0],function() {
return i[1]()
}]
}
function g$2() {
var n
do {
for (; n=e$1.shift();) try {
C(n)
} catch (t) {
a$1.__e(t,{__:(n=n.__P)&&n.__v})
}
for (; n=c$1.shift();) {
var t=n.__H
if (n.__P&&t) try {
t.__h.some(C),t.__h.some(D),t.__h=[]
} catch (r) {
t.__h=[],a$1.__e(r,n.__v)
}
}
} while (e$1.length)
}
a$1.__b=function(n) {
r$1=null,v$1&&v$1(n)
},a$1.__=function(n,t) {
n&&t.__k&&t.__k.__m&&(n.__m=t.__k.__m),p$2&&p$2(n,t)
},a$1.__r=function(n) {
l$1&&l$1(n),t$1=0
var i=(r$1=n.__c).__H
i&&(u$1==r$1?r$1.__h=[]:(i.__h.some(C),i.__h.some(D),t$1=0),i.__h=[],i.__.some(function(n) {
n.__N&&(n.__=n.__N),n.u=n.__N=void 0
})),u$1=r$1
},a$1.diffed=function(n) {
m$2&&m$2(n)
var t=n.__c
t&&t.__H&&(t.__H.__h.length&&B(c$1.push(t)),t.__H.__.some(function(n) {
n.u&&(n.__H=n.u)
})),u$1=r$1=null
},a$1.__c=function(n,t) {
t.some(function(n) {
try {
n.__h.some(C),n.__h=n.__h.filter(function(n) {
return !n.__||D(n)
})
} catch (t) {
n.__h=[function() {
throw t
}]
}
}),h$2&&h$2(n,t)
},a$1.unmount=function(n) {
s$1&&s$1(n)
var t,r,u=n.__c
u&&u.__H&&(u.__H.__.some(function(u) {
try {
if (u.__P&&u.__c) {
if (void 0===r) {
for (r=n.__; r&&(!r.__c||!r.__c.__P);) r=r.__
r=r&&r.__c
}
u.__P=r,B(e$1.push(u))
} else C(u)
} catch (n) {
t=n
}
}),u.__H=void 0,t&&a$1.__e(t,u.__v))
}
var k$1="function"==typeof requestAnimationFrame
function z(n) {
var t,r=function() {
clearTimeout(u),k$1&&cancelAnimationFrame(t),setTimeout(n)
},u=setTimeout(r,35)
k$1&&(t=requestAnimationFrame(r))
}
function B(n) {
1!=n&&i$1==a$1.requestAnimationFrame||((i$1=a$1.requestAnimationFrame)||z)(g$2)
}
function C(n) {
var t=r$1,u=n.__c
"function"==typeof u&&(n.__c=void 0,u()),r$1=t
}
function D(n) {
var t=r$1
n.__c=n.__(),r$1=t
}
function E(n,t) {
return !n||n.length!=t.length||t.some(function(t,r) {
return !o$1(t,n[r])
})
}
function G(n,t) {
return "function"==typeof t?t(n):t
}
var i=Symbol.for("preact-signals")
function t() {
if (!(v>1)) {
var i,t=!1;
(function() {
var i=c
c=void 0
while (void 0!==i) {
var t=i.S
if (t.v===i.v) {
for (var r=t.t; void 0!==r; r=r.x) if (r.i===i.i) r.i=t.i
}
i=i.o
}
})()
while (void 0!==h$1) {
var r=h$1
h$1=void 0
s++
while (void 0!==r) {
var n=r.u
r.u=void 0
r.f&=-3
if (!(8&r.f)&&w$1(r)) try {
r.c()
} catch (r) {
if (!t) {
i=r
t=!0
}
}
r=n
}
}
s=0
v--
if (t) throw i
} else v--
}
function r(i) {
if (v>0) return i()
u=++e
v++
try {
return i()
} finally {
t()
}
}
var n
var o=void 0
function f(i) {
var t=o,r=n
o=void 0
n=void 0
try {
return i()
} finally {
o=t
n=r
}
}
var h$1=void 0
var v=0
var s=0
var e=0
var u=0
var c=void 0
var a=0
function d$1(i) {
if (void 0!==o) {
var t=i.n
if (void 0===t||t.t!==o) {
t={i:0,S:i,p:o.s,n:void 0,t:o,e:void 0,x:void 0,r:t}
if (void 0!==o.s) o.s.n=t
o.s=t
i.n=t
if (32&o.f) i.S(t)
return t
} else if (-1===t.i) {
t.i=0
if (void 0!==t.n) {
t.n.p=t.p
if (void 0!==t.p) t.p.n=t.n
t.p=o.s
t.n=void 0
o.s.n=t
o.s=t
}
return t
}
}
}
function l(i,t) {
this.v=i
this.i=0
this.n=void 0
this.t=void 0
this.l=0
this.W=null==t?void 0:t.watched
this.Z=null==t?void 0:t.unwatched
this.name=null==t?void 0:t.name
}
l.prototype.brand=i
l.prototype.h=function() {
return !0
}
l.prototype.S=function(i) {
var t=this,r=this.t
if (r!==i&&void 0===i.e) {
i.x=r
this.t=i
if (void 0!==r) r.e=i
else f(function() {
var i
null==(i=t.W)||i.call(t)
})
}
}
l.prototype.U=function(i) {
var t=this
if (void 0!==this.t) {
var r=i.e,n=i.x
if (void 0!==r) {
r.x=n
i.e=void 0
}
if (void 0!==n) {
n.e=r
i.x=void 0
}
if (i===this.t) {
this.t=n
if (void 0===n) f(function() {
var i
null==(i=t.Z)||i.call(t)
})
}
}
}
l.prototype.subscribe=function(i) {
var t=this
return x(function() {
var r=t.value
f(function() {
return i(r)
})
},{name:"sub"})
}
l.prototype.valueOf=function() {
return this.value
}
l.prototype.toString=function() {
return this.value+""
}
l.prototype.toJSON=function() {
return this.value
}
l.prototype.peek=function() {
var i=this
return f(function() {
return i.value
})
}
Object.defineProperty(l.prototype,"value",{get:function() {
var i=d$1(this)
if (void 0!==i) i.i=this.i
return this.v
},set:function(i) {
if (i!==this.v) {
if (s>100) throw new Error("Cycle detected");
(function(i) {
if (0!==v&&0===s) {
if (i.l!==u) {
i.l=u
c={S:i,v:i.v,i:i.i,o:c}
}
}
})(this)
this.v=i
this.i++
a++
v++
try {
for (var r=this.t; void 0!==r; r=r.x) r.t.N()
} finally {
t()
}
}
}})
function y$1(i,t) {
return new l(i,t)
}
function w$1(i) {
for (var t=i.s; void 0!==t; t=t.n) if (t.S.i!==t.i||!t.S.h()||t.S.i!==t.i) return !0
return !1
}
function b$1(i) {
for (var t=i.s; void 0!==t; t=t.n) {
var r=t.S.n
if (void 0!==r) t.r=r
t.S.n=t
t.i=-1
if (void 0===t.n) {
i.s=t
break
}
}
}
function _(i) {
var t=i.s,r=void 0
while (void 0!==t) {
var n=t.p
if (-1===t.i) {
t.S.U(t)
if (void 0!==n) n.n=t.n
if (void 0!==t.n) t.n.p=n
} else r=t
t.S.n=t.r
if (void 0!==t.r) t.r=void 0
t=n
}
i.s=r
}
function j(i,t) {
l.call(this,void 0,t)
this.x=i
this.s=void 0
this.g=a-1
this.f=4
}
j.prototype=new l()
j.prototype.h=function() {
this.f&=-3
if (1&this.f) return !1
if (32==(36&this.f)) return !0
this.f&=-5
if (this.g===a) return !0
this.g=a
this.f|=1
if (this.i>0&&!w$1(this)) {
this.f&=-2
return !0
}
var i=o
try {
b$1(this)
o=this
var t=this.x()
if (16&this.f||this.v!==t||0===this.i) {
this.v=t
this.f&=-17
this.i++
}
} catch (i) {
this.v=i
this.f|=16
this.i++
}
o=i
_(this)
this.f&=-2
return !0
}
j.prototype.S=function(i) {
if (void 0===this.t) {
this.f|=36
for (var t=this.s; void 0!==t; t=t.n) t.S.S(t)
}
l.prototype.S.call(this,i)
}
j.prototype.U=function(i) {
if (void 0!==this.t) {
l.prototype.U.call(this,i)
if (void 0===this.t) {
this.f&=-33
for (var t=this.s; void 0!==t; t=t.n) t.S.U(t)
}
}
}
j.prototype.N=function() {
if (!(2&this.f)) {
this.f|=6
for (var i=this.t; void 0!==i; i=i.x) i.t.N()
}
}
Object.defineProperty(j.prototype,"value",{get:function() {
if (1&this.f) throw new Error("Cycle detected")
var i=d$1(this)
this.h()
if (void 0!==i) i.i=this.i
if (16&this.f) throw this.v
return this.v
}})
function O(i,t) {
return new j(i,t)
}
function p$1(i) {
var r=i.j
i.j=void 0
if ("function"==typeof r) {
v++
var n=o
o=void 0
try {
r()
} catch (t) {
i.f&=-2
i.f|=8
g$1(i)
throw t
} finally {
o=n
t()
}
}
}
function g$1(i) {
for (var t=i.s; void 0!==t; t=t.n) t.S.U(t)
i.x=void 0
i.s=void 0
p$1(i)
}
function S(i) {
if (o!==this) throw new Error("Out-of-order effect")
_(this)
o=i
this.f&=-2
try {
if (8&this.f) g$1(this)
} finally {
t()
}
}
function m$1(i,t) {
this.x=i
this.j=void 0
this.s=void 0
this.u=void 0
this.f=32
this.name=null==t?void 0:t.name
if (n) n.push(this)
}
m$1.prototype.c=function() {
var i=this.S()
try {
if (8&this.f) return
if (void 0===this.x) return
var t=this.x()
if ("function"==typeof t) this.j=t
} finally {
i()
}
}
m$1.prototype.S=function() {
if (1&this.f) throw new Error("Cycle detected")
this.f|=1
this.f&=-9
p$1(this)
b$1(this)
v++
var i=o
o=this
return S.bind(this,i)
}
m$1.prototype.N=function() {
if (!(2&this.f)) {
this.f|=2
this.u=h$1
h$1=this
}
}
m$1.prototype.d=function() {
this.f|=8
if (!(1&this.f)) g$1(this)
}
m$1.prototype.dispose=function() {
this.d()
}
function x(i,t) {
var r=new m$1(i,t)
try {
r.c()
} catch (i) {
r.d()
throw i
}
var n=r.d.bind(r)
n[Symbol.dispose]=n
return n
}
var h
var p
var m="undefined"!=typeof window&&!!window.__PREACT_SIGNALS_DEVTOOLS__
var g=[]
x(function() {
h=this.N
})()
function b(i,n) {
n$1[i]=n.bind(null,n$1[i]||function() {})
}
function y(i) {
if (p) {
var n=p
p=void 0
n()
}
p=i&&i.S()
}
function w(i) {
var n=this,r=i.data,t=useSignal(r)
t.name="ReactiveDom"
t.value=r
var e=w$2(function() {
var i=n,r=n.__v
while (r=r.__) if (r.__c) {
r.__c.__$f|=4
break
}
var o=O(function() {
var i=t.value.value
return 0===i?0:!0===i?"":i||""
}),e=O(function() {
return !Array.isArray(o.value)&&!r$2(o.value)
}),u=x(function() {
this.N=M
if (e.value) {
var n=o.value
if (i.__v&&i.__v.__e&&3===i.__v.__e.nodeType) i.__v.__e.data=n
}
}),c=n.__$u.d
n.__$u.d=function() {
u()
c.call(this)
}
return [e,o]
},[]),u=e[0],c=e[1]
return u.value?c.peek():c.value
}
w.displayName="ReactiveTextNode"
Object.defineProperties(l.prototype,{constructor:{configurable:!0,value:k$2($,null).constructor},type:{configurable:!0,value:w},props:{configurable:!0,get:function() {
var i=this
return {data:{get value() {
return i.value
}}}
}},__b:{configurable:!0,value:1}})
b("__b",function(i,n) {
y()
if ("string"==typeof n.type) {
var r,t=n.props
for (var f in t) if ("children"!==f) {
var o=t[f]
if (o instanceof l) {
if (!r) n.__np=r={}
r[f]=o
t[f]=o.peek()
}
}
}
i(n)
})
b("__r",function(i,r) {
i(r)
if (r.type!==$) {
y()
var t,f=r.__c
if (f) {
f.__$f&=-2
if (void 0===(t=f.__$u)) f.__$u=t=function(i,n) {
var r
x(function() {
r=this
},{name:n})
r.c=i
return r
}(function(i) {
return function() {
var n
if (m) null==(n=this.y)||n.call(this)
i.__$f|=1
i.setState({})
}
}(f),"function"==typeof r.type?r.type.displayName||r.type.name:"")
}
y(t)
}
})
b("__e",function(i,n,r,t) {
y()
i(n,r,t)
})
b("diffed",function(i,n) {
y()
var r
if ("string"==typeof n.type&&(r=n.__e)) {
var t=n.__np,f=n.props,o=r.U
if (o) for (var e in o) {
var u=o[e]
if (!(void 0===u||t&&e in t)) {
u.d()
o[e]=void 0
}
}
if (t) {
if (!o) {
o={}
r.U=o
}
for (var a in t) {
var c=o[a],v=t[a]
if (void 0===c) {
c=k(r,a,v,f)
o[a]=c
} else c.o(v,f)
}
}
}
i(n)
})
function k(i,n,r,t) {
var f=n in i&&void 0===i.ownerSVGElement,o=y$1(r)
return {o:function(i,n) {
o.value=i
t=n
},d:x(function() {
this.N=M
var r=o.value.value
if (t[n]!==r) {
t[n]=r
if (f) i[n]=r
else if (null!=r&&(!1!==r||"-"===n[4])) i.setAttribute(n,r)
else i.removeAttribute(n)
}
})}
}
b("unmount",function(i,n) {
if ("string"==typeof n.type) {
var r=n.__e
if (r) {
var t=r.U
if (t) {
r.U=void 0
for (var f in t) {
var o=t[f]
if (o) o.d()
}
}
}
var e=n.__np
if (e) {
var u=n.props
for (var a in e) u[a]=e[a]
}
n.__np=void 0
} else {
var c=n.__c
if (c) {
c.__$f|=8
var v=c.__$u
if (v) {
c.__$u=void 0
v.d()
}
}
}
i(n)
})
b("__h",function(i,n,r,t) {
if (t<3) n.__$f|=2
i(n,r,t)
})
x$1.prototype.shouldComponentUpdate=function(i,n) {
if (this.__R) return !0
var r=this.__$u,t=r&&void 0!==r.s
for (var f in n) return !0
if (this.__f||"boolean"==typeof this.u&&!0===this.u) {
var o=2&this.__$f
if (!(t||o||4&this.__$f)) return !0
if (1&this.__$f) return !0
} else {
if (!(t||4&this.__$f)) return !0
if (3&this.__$f) return !0
}
for (var e in i) if ("__source"!==e&&i[e]!==this.props[e]) return !0
for (var u in this.props) if (!(u in i)) return !0
return !1
}
function useSignal(i,n) {
return w$2(function() {
return y$1(i,n)
},[])
}
var A=function(i) {
queueMicrotask(function() {
queueMicrotask(i)
})
}
function F() {
r(function() {
var i
while (i=g.shift()) h.call(i)
})
}
function M() {
if (1===g.push(this)) (n$1.requestAnimationFrame||A)(F)
}
var KEPT$1=location.protocol!=="file:"
function recall$2(name) {
try {
return KEPT$1?localStorage.getItem(name):null
} catch {
return null
}
}
function keep(name,value) {
try {
if (KEPT$1) localStorage.setItem(name,value)
} catch {}
}
var remembered=recall$2("aver-theme")
var usesUtc=y$1(recall$2("aver-time")!=="local")
var theme=y$1(remembered==="light"||remembered==="dark"?remembered:"auto")
function applyPreferences() {
x(()=>keep("aver-time",usesUtc.value?"utc":"local"))
x(()=>{
keep("aver-theme",theme.value)
if (theme.value==="auto") delete document.documentElement.dataset["theme"]
else document.documentElement.dataset["theme"]=theme.value
})
}
var TOKEN="aver-token"
var KEYS$1="aver-keys"
var PLACE="aver-place"
function recall$1(name) {
try {
return sessionStorage.getItem(name)??""
} catch {
return ""
}
}
function takeSecrets() {
if (location.protocol==="file:") return {token:"",keys:""}
const fragment=location.hash.slice(1)
if (!fragment.startsWith("token=")) return {token:recall$1(TOKEN),keys:recall$1(KEYS$1)}
const given=new URLSearchParams(fragment)
history.replaceState(null,"",`${location.pathname}${location.search}${recall$1(PLACE)||"#/"}`)
return keepSecrets({token:given.get("token")??"",keys:given.get("keys")??""})
}
function keepSecrets(found) {
try {
sessionStorage.setItem(TOKEN,found.token)
sessionStorage.setItem(KEYS$1,found.keys)
sessionStorage.removeItem(PLACE)
} catch {}
return found
}
function keepPlace(address) {
try {
sessionStorage.setItem(PLACE,address)
} catch {}
location.reload()
}
var secrets=takeSecrets()
function forgetKeys() {
secrets.keys=""
keepSecrets(secrets)
}
var CHANNEL="aver-secrets"
var QUESTION="who has a token?"
var ANSWER_MS=500
async function askOtherTabs() {
if (secrets.token||location.protocol==="file:") return
const channel=new BroadcastChannel(CHANNEL)
await new Promise(resolve=>{
channel.onmessage=({data})=>{
const {token,keys}=data??{}
if (typeof token!=="string"||typeof keys!=="string") return
Object.assign(secrets,keepSecrets({token,keys}))
resolve()
}
channel.postMessage(QUESTION)
setTimeout(resolve,ANSWER_MS)
})
channel.close()
}
function answerOtherTabs(isAccepted) {
const channel=new BroadcastChannel(CHANNEL)
channel.onmessage=({data})=>{
if (data===QUESTION&&isAccepted()) channel.postMessage({token:secrets.token,keys:secrets.keys})
}
}
function readRoute() {
if (location.hash.startsWith(`#capsule://`)) return ["ref",location.hash.slice(1)]
const parts=location.hash.replace(/^#\/?/,"").split("?",1)[0].split("/").map(part=>{
try {
return decodeURIComponent(part)
} catch {
return part
}
})
return parts[0]==="c"&&!parts[2]?["chain",...parts.slice(1,2)]:parts
}
var route=y$1(readRoute())
var left=new Map()
var scrolled=new Map()
var here=location.hash
var beforeRecord=isRecord(here)?"":here||"#/"
var beforeChain=isOfChain(here)?"":here||"#/"
var waiting$1=null
var isFollowed=false
addEventListener("click",event=>{
isFollowed=event.target instanceof Element&&event.target.closest("a[href^='#']")!==null
},{capture:true})
addEventListener("hashchange",()=>{
if (location.hash.startsWith("#token=")) return keepPlace(here)
const active=document.activeElement
const target=active instanceof HTMLElement?active.getAttribute("href"):null
if (target!==null) left.set(here,target)
scrolled.set(here,scrollY)
here=location.hash
if (!isRecord(here)) beforeRecord=here
if (!isOfChain(here)) beforeChain=here
route.value=readRoute()
})
function isRecord(address) {
return address.startsWith("#/c/")
}
function isOfChain(address) {
return isRecord(address)||address.startsWith("#/chain/")
}
function wayUp() {
return beforeChain||link("chains")
}
function wayBack(chain,sequence) {
const [view=""]=beforeRecord.replace(/^#\/?/,"").split("/",1)
if (beforeRecord===""||view==="s") return link("s",chain,`at-${sequence}`)
return view==="chain"?link("chain",chain,`at-${sequence}`):beforeRecord
}
function returnFocus(main) {
scrollTo(0,isFollowed?0:scrolled.get(location.hash)??0)
isFollowed=false
const target=left.get(location.hash)
const find=()=>[...main.querySelectorAll("a[href]:not(svg a)")].find(one=>target!==void 0&&one.getAttribute("href")===target)
if (main.contains(document.activeElement)&&document.activeElement!==main) return;
(find()??main).focus({preventScroll:find()===void 0})
waiting$1?.disconnect()
if (target===void 0||find()) return
const [y,address]=[scrollY,here]
waiting$1=new MutationObserver(()=>{
const isStill=document.activeElement===main&&scrollY===y&&here===address
if (isStill&&!find()) return
waiting$1?.disconnect()
if (isStill) find()?.focus()
})
waiting$1.observe(main,{childList:true,subtree:true})
}
function link(...parts) {
return `#/${parts.map(part=>encodeURIComponent(String(part))).join("/")}`
}
function searchLink(words) {
return link(words.startsWith("capsule://")?"ref":"search",words)
}
function recordLink(chain,row) {
return link("c",chain,row.sequence===String(row.place)?row.sequence:`p${row.place}`)
}
var DATA_FILE=/^explorer\/data\/(?:names|[0-9]{1,7})\.js$/
function check(url) {
if (!url.startsWith("blob:")&&!DATA_FILE.test(url)) throw new TypeError(`${url} is no script of this page`)
return url
}
var policy=globalThis.trustedTypes?.createPolicy("aver",{createScriptURL:check})??{createScriptURL:check}
function scriptUrl(url) {
return policy.createScriptURL(url)
}
var NotJudgedHere=class extends Error {}
var LOOKS_MAX=12
var LOOK_EVERY=5e3
var CREW_MAX=8
var script=null
function startWorker() {
script??=new Blob([`(${String(averExplorer)})();`],{type:"text/javascript"})
const url=URL.createObjectURL(script)
const worker=new Worker(scriptUrl(url))
URL.revokeObjectURL(url)
return worker
}
function crewSize() {
return Math.min(Math.max((navigator.hardwareConcurrency||2)-1,0),CREW_MAX)
}
var Connection=class {
worker=null
crew=[]
waiting=new Map()
nextId=1
opened=null
looks=0
constructor(crewWanted=0) {
this.crewWanted=crewWanted
}
ask(request,progress) {
const isOpening=request.type==="open"
if (isOpening) this.opened=request.thing
const worker=this.start(isOpening)
const id=this.nextId++
return new Promise((resolve,reject)=>{
this.waiting.set(id,{resolve,reject,...progress?{progress}:{}})
worker.postMessage({...request,id})
})
}
rest() {
if (this.waiting.size) this.worker?.postMessage({id:0,type:"rest"})
}
warm() {
this.start(true)
}
leave() {
if (this.opened!==null||this.waiting.size) this.stop("another thing was opened")
}
stop(words="stopped") {
for (const worker of [...this.worker?[this.worker]:[],...this.crew]) worker.terminate()
this.worker=null
this.crew=[]
clearInterval(this.watch)
for (const {reject} of this.waiting.values()) reject(new NotJudgedHere(words))
this.waiting.clear()
}
start(isOpening) {
if (this.worker!==null) return this.worker
const worker=this.startOne()
this.worker=worker
worker.addEventListener("message",event=>this.take(event.data))
const ports=Array.from({length:this.crewWanted},()=>{
const {port1,port2}=new MessageChannel()
const helper=this.startOne()
helper.postMessage({id:0,type:"assist",port:port2},[port2])
this.crew.push(helper)
return port1
})
if (ports.length) worker.postMessage({id:0,type:"crew",ports},ports)
if (!isOpening&&this.opened!==null) worker.postMessage({id:0,type:"open",thing:this.opened})
this.looks=0
this.watch=setInterval(()=>this.look(),LOOK_EVERY)
return worker
}
startOne() {
const worker=startWorker()
worker.addEventListener("error",event=>this.stop(`a worker was lost: ${event.message||"no reason given"}`))
return worker
}
look() {
this.looks=this.waiting.size?this.looks+1:0
if (this.looks>LOOKS_MAX) this.stop("a worker was lost: it has not answered for a minute")
}
take(answer) {
this.looks=0
const waiting=this.waiting.get(answer.id)
if (waiting===void 0||answer.type==="alive") return
if (answer.type==="progress") {
waiting.progress?.(answer.progress)
return
}
this.waiting.delete(answer.id)
if (answer.type==="done") waiting.resolve(answer.result)
else waiting.reject(answer.isNotJudged?new NotJudgedHere(answer.words):new Error(answer.words))
}
};
// src/verify/key_list.ts
function refuseIndex(document) {
if (isObject(document)&&(document.has("chains")||document.has("public_key"))) throw new BadInput("it is the index of a bundle, whose keys come with the records. Ask the owner for the file of aver keys export")
}
function readKeyList(text) {
const found=[]
const look=value=>{
if (Array.isArray(value)) value.forEach(look)
else if (value instanceof Map) {
const entry=new Map([...value].filter(([name])=>name!=="origin"))
if (!(!entry.has("identity")||value.has("origin")&&entry.get("identity")===null)) found.push({key:readRingEntry(entry).key,entry})
else if (typeof value.get("public_key")==="string"&&value.has("public_key_pq")) found.push({key:new PublicKey(value.get("public_key"),value.get("public_key_pq")),entry:null})
else for (const item of value.values()) look(item)
} else if (typeof value==="string"&&/^[0-9a-f]{64}$/.test(value)) found.push({key:new PublicKey(value),entry:null})
}
look(readJson(text))
return found
}
var pins=y$1([])
var NO_LEDGER="files"
var HEADS_MAX=2e4
var KEPT=location.protocol!=="file:"
var scope=""
var visit={pins:new Map(),heads:new Map()}
function openStore() {
return new Promise((resolve,reject)=>{
const opening=indexedDB.open("aver",2)
opening.onupgradeneeded=()=>{
for (const name of [...opening.result.objectStoreNames]) opening.result.deleteObjectStore(name)
opening.result.createObjectStore("pins",{keyPath:["scope","publicKey"]})
opening.result.createObjectStore("heads",{keyPath:"scope"})
}
opening.onsuccess=()=>resolve(opening.result)
opening.onerror=()=>reject(opening.error)
opening.onblocked=()=>reject(new Error("the store is in use"))
})
}
function settle(asking) {
return new Promise((resolve,reject)=>{
asking.onsuccess=()=>resolve(asking.result)
asking.onerror=()=>reject(asking.error)
})
}
async function enterScope(name) {
if (name===scope) return
const carried=scope===""?pins.value:[]
scope=name
pins.value=visit.pins.get(name)??[]
if (KEPT&&name!=="") try {
const range=IDBKeyRange.bound([name],[name,[]])
const kept=await settle((await openStore()).transaction("pins").objectStore("pins").getAll(range))
if (scope!==name) return
pins.value=kept
} catch {}
for (const {origin,at:_,...key} of carried) pinKey(key,origin)
}
function isRetired({entry=""}) {
return entry.includes("\"status\":\"retired\"")
}
async function pinKey(key,origin) {
const before=pins.value.find(pin=>pin.publicKey===key.publicKey)
if (!(before===void 0||key.publicKeyPq&&!before.publicKeyPq||key.entry&&key.entry!==before.entry&&!isRetired(before))) return
const pin={publicKey:key.publicKey,publicKeyPq:key.publicKeyPq||(before?.publicKeyPq??""),origin,at:new Date().toISOString()}
const entry=before&&isRetired(before)?before.entry:key.entry||before?.entry
if (entry) pin.entry=entry
pins.value=[...pins.value.filter(one=>one!==before),pin]
const kept={scope,...pin}
await change(store=>store.put(kept))
}
function unpinKey(publicKey) {
pins.value=pins.value.filter(pin=>pin.publicKey!==publicKey)
const kept=[scope,publicKey]
change(store=>store.delete(kept))
}
async function change(work) {
if (scope==="") return
visit.pins.set(scope,pins.value)
if (!KEPT) return
try {
await settle(work((await openStore()).transaction("pins","readwrite").objectStore("pins")))
} catch {}
}
async function recallHeads(ledger) {
const seen=visit.heads.get(ledger)??[]
if (!KEPT) return seen
try {
return (await settle((await openStore()).transaction("heads").objectStore("heads").get(ledger)))?.heads??[]
} catch {
return seen
}
}
async function rememberHeads(ledger,heads) {
const all=new Map(await recallHeads(ledger))
for (const [chain,head] of heads) if ((all.get(chain)?.count??0)<head.count) all.set(chain,head)
visit.heads.set(ledger,[...all].slice(0,HEADS_MAX))
if (!KEPT) return
try {
(await openStore()).transaction("heads","readwrite").objectStore("heads").put({scope:ledger,heads:visit.heads.get(ledger)})
} catch {}
}
var NO_KEY="This is no key. Give 64 hex digits, or the file that aver keys export writes."
function toPin(key,entry="") {
if (!isPrimeOrderPoint(key.ed25519)) throw new Error(`${key.fingerprint} is not a usable Ed25519 public key: nobody can sign with it. Copy the key again.`)
return {publicKey:key.ed25519,publicKeyPq:key.mlDsa,entry}
}
function readKeys(text) {
const plain=text.trim()
if (/^[0-9a-f]{16}$/.test(plain)) throw new Error("These 16 digits are only a fingerprint. Ask for the whole key: 64 digits.")
if (/^[0-9A-Fa-f]{64}$/.test(plain)) return [toPin(new PublicKey(plain.toLowerCase()))]
if (!/^[[{]/.test(plain)) throw new Error(NO_KEY)
let found
try {
found=readPins(plain)
} catch (error) {
if (error instanceof BadInput) throw new Error(`${NO_KEY} It looks like a file, but cannot be read: ${error.message}.`)
throw error
}
if (!found.length) throw new Error(NO_KEY)
return found
}
function readPins(text) {
refuseIndex(readJson(text))
return readKeyList(text).map(({key,entry})=>toPin(key,entry===null?"":canonicalJson(entry)))
}
var JUDGED_AGAIN_MAX=2e3
var connection=new Connection()
var judges=new Connection(crewSize())
var thing=y$1(null)
var contents=y$1(null)
var judgement=y$1({state:"none"})
var chainJudgements=y$1(new Map())
var opening=y$1("")
var problem=y$1("")
var retryOpening=y$1(null)
var changed=y$1("")
var copyHeads=[]
var spoken=y$1("")
var waiting=y$1(0)
var doorServer=y$1(null)
var server=O(()=>thing.value?.live?doorServer.value:null)
var home$1=y$1(null)
var liveState=y$1({isLive:false,since:"",words:""})
var news=y$1({heads:0,approvals:0,index:0})
var unjudged=y$1(0)
var original=null
var retryLive=()=>{}
var beforeHome=async ()=>{}
var turns=0
function watchTurn() {
const mine=turns
return ()=>mine===turns
}
function takeTurn() {
turns++
return watchTurn()
}
var verdict=O(()=>judgement.value.state==="done"?judgement.value.verdict:null)
var totalRecords=O(()=>(contents.value?.chains??[]).reduce((sum,chain)=>sum+(chain.length??0),0))
function judgementOf(chain) {
const own=chainJudgements.value.get(chain)
return own!==void 0&&judgement.value.state!=="done"?own:judgement.value
}
function findingsOf(chain) {
const found=judgementOf(chain)
if (found.state!=="done") return []
return found.verdict.findings.filter(finding=>finding.place.chain===chain||isAlone()&&finding.place.chain===null).map(finding=>({...finding,place:placeInChain(finding.place)}))
}
function isAlone() {
return !["bundle","ledger","report","cap"].includes(contents.value?.format??"")
}
function isOfActions() {
return ["actions","capseal"].includes(contents.value?.format??"")
}
function placeInChain(place) {
const {name="",format=""}=contents.value??{}
const prefix=place.chain!==null?"":`${format==="capseal"?"actions.jsonl":name}, `
if (place.sequence!==null||!place.source?.startsWith(`${prefix}action `)) return place
const number=Number.parseInt(place.source.slice(`${prefix}action `.length))
return {...place,sequence:place.chain===null?number:number+1}
}
function pinnedKeys() {
return pins.value.map(({origin:_,at:__,...key})=>key)
}
function scopeOf({ledger,tenant}) {
return ledger===null?NO_LEDGER:`${ledger}/${tenant}`
}
function headScopes(found,listed) {
if (!found.isFolder||listed.ledger===null) return []
return found.live?[scopeOf(listed)]:[`copies of ${scopeOf(listed)}`,scopeOf(listed)]
}
function warmWorkers() {
connection.warm()
judges.warm()
}
async function openThing(found,change="") {
const isLatest=takeTurn()
connection.leave()
judges.leave()
changed.value=change
if (!change) [copyHeads,original]=[[],null]
thing.value=found
contents.value=null
judgement.value={state:"none"}
chainJudgements.value=new Map()
unjudged.value=0
problem.value=""
retryOpening.value=null
opening.value=`Reading ${found.name}`
try {
const listing=connection.ask({type:"open",thing:found})
if (!found.live) judges.warm()
const listed=await listing
if (!isLatest()) return
if (!change) await enterScope(scopeOf(listed))
if (!isLatest()) return
contents.value=listed
opening.value=""
const isVerified=totalRecords.value<=2e4||!found.live
if (isVerified) judges.warm()
const judging=(found===home$1.value?beforeHome(isLatest):Promise.resolve()).then(()=>isVerified&&isLatest()?verifyThing():void 0)
firstJudging=judging.catch(()=>{})
await judging
} catch (error) {
if (!isLatest()) return
opening.value="";
[thing.value,contents.value]=[null,null]
problem.value=error.message
if (found===home$1.value) retryOpening.value=()=>void openThing(found,change)
await enterScope("")
}
}
async function verifyThing() {
const [found,listed]=[thing.value,contents.value]
if (found===null||listed===null||judgement.value.state==="working") return
const [keys,records,isLatest]=[pins.value,totalRecords.value,watchTurn()]
chainJudgements.value=new Map()
judgement.value={state:"working",progress:null}
spoken.value="Verifying"
const done=await judge(found,listed,null,isLatest,next=>{
judgement.value=next
})
if (!isLatest()) return
judgement.value=done
unjudged.value=Math.max(0,totalRecords.value-Math.max(records,done.state==="done"?done.verdict.records:0))
spoken.value=done.state==="done"?`Verdict: ${done.verdict.status}`:"Not judged"
if (done.state==="done"&&pins.value!==keys) await verifyThing()
}
async function verifyChain(chain) {
const [found,listed]=[thing.value,contents.value]
if (found===null||listed===null||judgement.value.state==="done"||judgement.value.state==="working") return
if (["working","done"].includes(chainJudgements.value.get(chain)?.state??"")) return
const [keys,head,isLatest]=[pins.value,headOf(chain),watchTurn()]
const set=next=>{
chainJudgements.value=new Map(chainJudgements.value).set(chain,next)
}
set({state:"working",progress:null})
const done=await judge(found,listed,[chain],isLatest,set)
if (!isLatest()) return
const isOld=done.state==="done"&&(pins.value!==keys||headOf(chain)!==head)
set(isOld?{state:"none"}:done)
if (isOld) return verifyChain(chain)
spoken.value=done.state==="done"?`Verdict on this chain: ${done.verdict.status}`:"Not judged"
}
function unjudgedOf(chains) {
return chains.filter(chain=>(chainJudgements.value.get(chain)?.state??"none")==="none")
}
async function judge(found,listed,chains,isLatest,report) {
const scopes=headScopes(found,listed)
const stay=()=>{
if (!isLatest()) throw new NotJudgedHere("another thing was opened")
}
try {
const remembered=changed.value?copyHeads:scopes[0]?await recallHeads(scopes[0]):[]
stay()
await judges.ask({type:"open",thing:found})
stay()
const {heads,held,...result}=await judges.ask({type:"verify",keys:pinnedKeys(),remembered,chains},progress=>{
if (isLatest()) report({state:"working",progress})
})
stay()
if (found.live) {
found.held=[...chains===null?[]:(found.held??[]).filter(([name])=>!chains.includes(name)),...held]
const other=await connection.ask({type:"hold",held:found.held})
if (other) throw new NotJudgedHere(`the server gave this page another ${other} than it gave to be verified`)
stay()
}
if (!changed.value) {
copyHeads=heads
if (isSignedByPins(result.verdict)) for (const scope of scopes) await rememberHeads(scope,heads)
}
return {state:"done",...result,at:new Date()}
} catch (error) {
return {state:"not judged",words:error instanceof NotJudgedHere?error.message:`the verifier broke down: ${error.message}`}
}
}
function isSignedByPins({status,checks}) {
return status!=="failed"&&checks.some(check=>check.name==="signature"&&check.status==="passed"&&check.count>0)
}
var CORES_MIN=3
var firstJudging=Promise.resolve()
function waitForTurn() {
return crewSize()+1<CORES_MIN?firstJudging:Promise.resolve()
}
function stopVerifying() {
judges.stop("you stopped it")
}
var REST_EVERY=50
var restAsked=0
function yieldToScrolling() {
const now=performance.now()
if (now-restAsked<REST_EVERY) return
restAsked=now
judges.rest()
}
function headOf(chain) {
const found=contents.value?.chains.find(one=>one.id===chain)
return found===void 0?"":`${found.length} ${found.head}`
}
async function refreshContents() {
const [before,isLatest]=[contents.value,watchTurn()]
const listed=await connection.ask({type:"refresh"}).catch(error=>{
if (isLatest()) throw error
return null
})
if (before===null||listed===null||!isLatest()) return false
const heads=new Map(listed.chains.map(one=>[one.id,one]))
const changed=before.chains.filter(({id,length,head})=>heads.get(id)?.length!==length||heads.get(id)?.head!==head)
if (!changed.length&&before.chains.length===listed.chains.length) return false
const records=totalRecords.value
contents.value=listed
const judged=new Map(chainJudgements.value)
for (const {id,length} of changed) {
const now=heads.get(id)?.length??0
const isOther=(length??0)>=now
const next={state:"not judged",words:isOther?`the server has fewer records of ${id} than before, or others`:`${id} has grown since it was verified`}
if (isOther&&judgement.value.state==="done") judgement.value=next
if (judged.get(id)?.state==="done") judged.set(id,isOther||now>JUDGED_AGAIN_MAX?next:{state:"none"})
}
chainJudgements.value=judged
unjudged.value+=Math.max(0,totalRecords.value-records)
return true
}
async function tryChange(chain,place,change,words) {
const [found,isLatest]=[thing.value,watchTurn()]
if (found===null) return
const {files}=await connection.ask({type:"change",chain,place,change})
if (!isLatest()) return
const replaced=new Map(files)
original??=found
location.hash="#/"
await openThing({...found,files:found.files.flatMap(([path,blob])=>{
const other=replaced.has(path)?replaced.get(path):blob
return other?[[path,other]]:[]
})},changed.value?`${changed.value}; then ${words}`:words)
}
async function undoChange() {
const found=original
original=null
if (found!==null) await openThing(found)
}
function setLiveSteps(retry,before) {
[retryLive,beforeHome]=[retry,before]
}
function reconnect() {
retryLive()
}
var PLAIN=/^[\t\n\x20-\x7e]*$/
var HIDDEN$1=new RegExp(["(?![\\t\\n\\ufe0e\\ufe0f])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]","(?<!\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]","(?<=\\p{M}{2})\\p{M}"].join("|"),"gu")
function visible(text) {
if (PLAIN.test(text)) return text
return text.replace(HIDDEN$1,one=>`⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4,"0")}⟩`)
}
function Text({children}) {
return k$2("bdi",null,visible(children))
}
function Linked({children}) {
return k$2("bdi",null,splitReferences(children).map((piece,at)=>at%2?k$2("a",{key:at,href:link("ref",piece)},visible(piece)):visible(piece)))
}
function WholeHex({children}) {
const [isFocused,setFocused]=d$2(false)
return k$2("code",{class:"hex",tabIndex:0,title:visible(children),onFocus:()=>setFocused(true),onBlur:()=>setFocused(false)},visible(isFocused?children:children.slice(0,16)),!isFocused&&children.length>16?"…":"")
}
function Hex({children,length=16}) {
return k$2("code",{class:"hex",title:visible(children)},visible(children.slice(0,length)),children.length>length?"…":"")
}
function Time({children,short=false,brief=false}) {
const words=readTime(children)
if (!words) return k$2(Text,null,children)
const zone=usesUtc.value?" UTC":""
const shown=short?words.slice(11,19):brief?words.slice(0,16).replace("T"," "):`${words.slice(0,19).replace("T"," ")}${zone}`
return k$2("time",{dateTime:children,title:visible(children)},shown)
}
function readTime(text) {
const date=new Date(/^\d{4}-\d\d-\d\dT/.test(text)?text:NaN)
return Number.isNaN(date.getTime())?"":formatTime(date)
}
function formatTime(date) {
return (usesUtc.value?date:new Date(date.getTime()-date.getTimezoneOffset()*6e4)).toISOString()
}
var figures=new Intl.NumberFormat("en-GB")
function count(value) {
return figures.format(value.valueOf())
}
function plural(value,one,many=`${one}s`) {
return `${count(value)} ${value===1?one:many}`
}
function Copy({text,label}) {
return k$2("button",{type:"button",class:"small",onClick:event=>{
const button=event.currentTarget
navigator.clipboard?.writeText(text).then(()=>{
button.textContent="copied"
setTimeout(()=>{
button.textContent=label
},1500)
})
}},label)
}
function quoteName(name) {
return /^[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*$/.test(name)?name:`'${name.replaceAll("'","'\\''")}'`
}
function ledgerOptions(command) {
const options=/^aver (?!install|keys)/.test(command)&&server.value?.about["command_options"]
if (!Array.isArray(options)||!options.every((word,at)=>at%2||word==="--ledger"||word==="--tenant")) return ""
return options.map((word,at)=>` ${at%2?quoteName(visible(String(word))):word}`).join("")
}
function Command({children,isElsewhere=false}) {
const command=children+(isElsewhere?"":ledgerOptions(children))
return k$2("span",{class:"command"},k$2("code",null,visible(command).split(" ").map((word,at)=>k$2($,null,at?" ":"",k$2("span",null,word))))," ",k$2(Copy,{text:command,label:"copy"}))
}
var codes_default$1={"HASH_MISMATCH":{"meaning":"The content does not have the stored hash: it was changed after sealing, or the hash was.","advice":"Restore this record from a copy you trust; treat its content as unproven."},"SIG_INVALID":{"meaning":"The signature was not made over this hash by the key it names.","advice":"Check that you verify with the signer's key; if you do, the seal was forged or damaged."},"SIG_MISSING":{"meaning":"The record carries no signature where one is required.","advice":"Ask the sender for the signed record."},"UNKNOWN_SIGNER":{"meaning":"The signer's key is not known here, so the signature was not checked.","advice":"Get the public key from a source you trust, then: aver keys import FILE --trust KEY (all 64 digits), or verify with --key."},"KEY_RETIRED":{"meaning":"The record was signed by a key after that key was retired.","advice":"Treat it as forged by someone who holds the old key, unless its maker can explain it."},"KEY_MISMATCH":{"meaning":"A key was used for something else than its purpose, or a private key file does not hold the key that the ring says.","advice":"Treat a record that such a key sealed as forged by the key's holder. Of a private file, restore the key files and the ring from the same backup."},"KEY_UNRECORDED":{"meaning":"A signer's key is not in an intact keys chain, or was recorded only after it had sealed. A ledger records every key before that key seals.","advice":"The keys chain may have been cut or left out to hide that a key was retired. Ask for the whole ledger or bundle, and verify it with the keys that its owner exports."},"SEAL_MISMATCH":{"meaning":"signed_at or signed_by differ from what was sealed inside the record.","advice":"Trust the values inside the record; find out who rewrote the seal."},"CHAIN_BREAK":{"meaning":"The record does not point at the hash of the one before it.","advice":"Records were replaced, reordered or removed here; compare with a copy or a checkpoint."},"CHAIN_IDENTITY":{"meaning":"The chain's first record names another chain, ledger or tenant.","advice":"It was renamed or copied from elsewhere; look for the original."},"SEQUENCE_GAP":{"meaning":"A sequence number is missing, repeated or out of order.","advice":"Records were removed or inserted here; compare with a copy or a checkpoint."},"GENESIS_INVALID":{"meaning":"The first record points at a predecessor, or a later one claims to be the first.","advice":"The beginning of the chain was cut off; look for the records before it."},"NOT_CANONICAL":{"meaning":"Signed bytes are not written as their maker writes them.","advice":"A warning: the record is intact; you need not do anything. A failure: get the document again from its maker."},"NOT_VALID_CPS":{"meaning":"The record is intact, but a key or a value is not one that the Capsule Protocol allows.","advice":"The software that made the record does not follow the specification. Read the named field with care."},"SCHEMA_INVALID":{"meaning":"The bytes are not a capsule: not JSON, or required keys are missing or of the wrong type.","advice":"Restore this record from a copy you trust."},"NOT_READ":{"meaning":"So much cannot be read, or a limit is exceeded so far, that the verifier stopped; the rest was not read.","advice":"The verdict says nothing about the rest. Restore the whole from a copy you trust."},"UNLISTED_FILE":{"meaning":"A file lies in the bundle or in the directory of the run that is no part of it, or a blob to which no record refers.","advice":"It was not verified: do not take it for evidence. Move it elsewhere."},"PAGE_FOREIGN":{"meaning":"The page beside the records is none of Aver's, or other files lie with it. Such a page may show anything.","advice":"Do not open it. Read the records with aver log --ledger DIRECTORY, or choose the directory in your own Explorer, under Verify a file."},"DUPLICATE_RECORD":{"meaning":"The same record id or idempotency key occurs twice.","advice":"One of the two was inserted; compare with a copy."},"DUPLICATE_KEY":{"meaning":"One JSON object has the same key twice, so that the record reads differently in different programs.","advice":"Treat the record as forged: no honest writer makes such bytes."},"TRUNCATED":{"meaning":"The chain is shorter than it once was.","advice":"Records were removed, at its end or further up; restore them from a copy."},"ROLLBACK":{"meaning":"This is an older or another copy of a ledger that this machine has seen before.","advice":"Both heads are given as proof; find out who put the old copy back."},"CHAIN_MISSING":{"meaning":"A chain that was recorded as sealed is not here.","advice":"It was deleted; restore it from a copy."},"HEAD_MISMATCH":{"meaning":"A chain, or records at its end, are in the bundle and not in its signed head.json.","advice":"They were added after the export; ask the exporter for a new bundle, and treat what was added as unproven."},"INDEX_MISMATCH":{"meaning":"The index of a bundle claims something about its records or keys that they do not bear out.","advice":"Trust the records and not the index; find out who rewrote it."},"RECEIPT_MISMATCH":{"meaning":"An action's receipt does not match the action.","advice":"The action or its receipt was changed; treat it as unproven."},"PROOF_INVALID":{"meaning":"A proof does not prove what it states.","advice":"Ask for the proof again, or verify the whole run."},"ARTIFACT_MISSING":{"meaning":"The record refers to a large value that is not here.","advice":"Ask the sender of the data for its blobs."},"ARTIFACT_HASH_MISMATCH":{"meaning":"A large value does not have the digest by which the record refers to it.","advice":"It was changed; restore it from a copy."},"CLAIM_UNPROVEN":{"meaning":"The evidence of a claim does not hold, or there is none.","advice":"Do not rely on the claim."},"ROLE_POLICY_VIOLATION":{"meaning":"A participant did something that its role does not allow.","advice":"Treat what follows from it as unproven."},"STATE_VIOLATION":{"meaning":"An event came in a state that does not admit it.","advice":"Treat what follows from it as unproven."},"REPLAY":{"meaning":"Something that may be used only once was used again.","advice":"Only the first use counts."},"EVIDENCE_INVALID":{"meaning":"Signed evidence does not hold: that of a policy server, of a participant, or of an auditor.","advice":"Treat what rests on it as not decided and not proven."},"CLAIM_DISPUTED":{"meaning":"A critic disputes a claim, and nobody has settled that; or a person has upheld the challenge.","advice":"Do not rely on the claim while the challenge is open, and not at all if it was upheld."},"NOT_REPRODUCED":{"meaning":"An execution that was said to be repeatable gave another result when the auditor repeated it.","advice":"Find out on what else its result depends; rely on it only for the recorded run."},"NOT_INDEPENDENT":{"meaning":"A key that approves or judges lies within reach of what it approved or judged: in a plain file, in the same home, or as a passkey that no other key vouched for.","advice":"Treat it as the agent's own word, unless its maker can explain it; keep approvers' keys under a passphrase, and critics' and auditors' keys elsewhere."},"UNBOUND_STATEMENT":{"meaning":"An approval was signed for an earlier version of Aver, whose statement names no ledger, tenant or request.","advice":"Nothing shows that it was given for this request: it may have been copied. Ask the approver, or approve again."},"UNCONFIRMED":{"meaning":"An action that a person had to confirm was carried out on the word of its caller.","advice":"Treat it as the agent's own decision. A person signs by aver approvals approve."},"OUTCOME_UNKNOWN":{"meaning":"An act was begun, and no record says how it ended.","advice":"Look whether its effect is there. Aver does not try it again."}}
var WORDS$1={schema:"each record is whole and has the form of a capsule",canonical:"each is written in the one exact form that is hashed",content:"each has the hash that it was sealed with: nothing in it was changed",signature:"each was signed by a key that you pinned",signature_pq:"each post-quantum signature is right, too",links:"each names the record before it: none was removed or moved",genesis:"each chain has its beginning",identity:"each chain belongs to this ledger under this name",keys:"each key was in use when it signed",blobs:"large texts and files beside the records are unchanged",meta:"no chain is shorter than the ledger noted",profile:"the form of the records",index:"the list of chains says what the records say",head:"exactly these chains and records were exported",page:"the page shows the bytes of the bundle's own files",rollback:"nothing is older than this browser saw before",approvals:"each answer was signed by its person, in time, for this request",report:"the report is the one that was signed, and its records bear it out",archive:"the file holds what it says, and nothing else",receipts:"each action has a receipt, in order",parents:"each action names the one before it",sealed:"the run was sealed as a whole",gates:"each action passed its gate",proof:"the action is part of the run",trace:"the trace is the one that was sealed"}
function describeCheck$1(name) {
return WORDS$1[name]??""
}
var PATHS$1={verified:k$2($,null,k$2("circle",{cx:"10",cy:"10",r:"9",fill:"currentColor"}),k$2("path",{d:"M5.5 10.5l3 3 6-7",class:"ink"})),qualified:k$2($,null,k$2("circle",{cx:"10",cy:"10",r:"8",class:"line"}),k$2("path",{d:"M10 2a8 8 0 0 1 0 16z",fill:"currentColor"})),failed:k$2($,null,k$2("path",{d:"M6.3 1h7.4L19 6.3v7.4L13.7 19H6.3L1 13.7V6.3z",fill:"currentColor"}),k$2("path",{d:"M6.5 6.5l7 7m0-7l-7 7",class:"ink"})),empty:k$2("circle",{cx:"10",cy:"10",r:"8",class:"line"}),"not judged":k$2("circle",{cx:"10",cy:"10",r:"8",class:"line dashed"}),working:k$2("circle",{cx:"10",cy:"10",r:"8",class:"line faint"})}
function Mark({name,share=0}) {
return k$2("svg",{class:`mark ${name.replace(" ","-")}`,viewBox:"0 0 20 20",width:"20",height:"20","aria-hidden":"true"},PATHS$1[name],name==="working"?k$2("circle",{cx:"10",cy:"10",r:"8",class:"line",pathLength:"100","stroke-dasharray":`${share} 100`,transform:"rotate(-90 10 10)"}):null)
}
var ADVICE=codes_default$1
function adviceOn(code) {
return lookUp(ADVICE,code)
}
function isOnlyOfCommand({name}) {
return ["decisions","changes","evidence","effects","delegation","protocol"].includes(name)
}
function remedy(check) {
if (isOfActions()) return ""
if (check.code==="UNKNOWN_SIGNER"||check.name==="signature"||check.name==="signature_pq") return k$2($,null,"Pin this key on ",k$2("a",{href:link("keys")},"Keys"),", after you compared it with its owner.")
if (check.name==="page") return k$2($,null,"Choose this folder under ",k$2("a",{href:link("open")},"Verify a file"),", or: ",k$2(Command,null,verifyCommand()))
if (isOnlyOfCommand(check)) return changed.value?"":k$2(Command,null,verifyCommand())
if (check.name==="unlisted_files") return k$2($,null,"Who has the site's directory runs: ",k$2(Command,null,"aver verify DIRECTORY"))
if (check.name==="columns"||check.name==="store") return "These belong to a ledger's file, and no copy has them."
if (check.name==="head") return thing.value?.live?k$2($,null,"Compare with a checkpoint that you keep: ",k$2(Command,null,"aver verify --checkpoint FILE")):k$2($,null,"Export it again with the ledger's key at hand: ",k$2(Command,null,"aver export --out DIR"))
if (check.name==="meta") return k$2($,null,"Open the whole ledger: ",k$2(Command,null,"aver export --out DIR"))
return ""
}
function dayOf(at) {
return new Date(at).toLocaleDateString("en-GB",{day:"numeric",month:"short",timeZone:"UTC"})
}
function extentOf({records,chains}) {
return `${thing.value?.areCopies?"the copies of ":""}${plural(records,"record")}${chains?` in ${plural(chains,"chain")}`:""}`
}
function sentence(verdict,signers) {
const extent=extentOf(verdict)
const integrity=integrityOf(verdict)
const unknown=verdict.records-heldOf(verdict)
const unsigned=unknown<verdict.records?`${plural(unknown,"record")} by keys that you have not pinned`:"nobody's signature was checked"
const lead=integrity==="intact"?"Intact. ":integrity==="unsigned"?`Unsigned: ${unsigned}. `:""
if (verdict.status==="verified") {
const used=pins.value.filter(pin=>!signers.length||signers.includes(pin.publicKey))
return `${lead}Verified: ${extent}, signed by ${used.slice(0,3).map(pin=>`${pin.publicKey.slice(0,16)}, which you pinned on ${dayOf(pin.at)}`).join("; ")||"keys that you pinned"}${used.length>3?`, and ${used.length-3} more keys`:""}.`
}
if (verdict.status==="qualified") return `${lead}Nothing failed in ${extent}, but not everything was checked. The list says what was not, and why.`
if (verdict.status==="empty") return "There is nothing to verify: no record was read. That is never a success."
return `${lead}It does not hold: ${verdict.first_bad?.words??"a check failed"}.`
}
function describePlace({chain,sequence,source}) {
return [source??"",chain===null?"":`chain ${chain}`,sequence===null?"":`sequence ${sequence}`].filter(Boolean).join(", ")||"the whole"
}
function placeLink(place) {
const {chain,sequence}=placeInChain(place)
const name=chain??(isAlone()?contents.value?.chains[0]?.id:null)
return name?sequence===null?link("chain",name):link("chain",name,`at-${sequence}`):null
}
function FindingCard({finding,others=[],shown=1,isFirst=false}) {
const explained=adviceOn(finding.code)
const target=placeLink(finding.place)
return k$2("div",{class:`finding ${finding.status}`},k$2("p",null,k$2("strong",null,finding.code)," at ",others.length?plural(others.length+1,"place"):k$2(Text,null,describePlace(finding.place)),": ",k$2(Text,null,finding.words),isFirst&&target!==null?k$2($,null," ",k$2("a",{href:target},"Go there")," ",k$2("kbd",{"aria-hidden":"true"},"b")):null),others.length?k$2(Places,{places:[finding,...others].map(({place})=>place),shown}):null,explained===void 0?null:k$2("p",{class:"beside"},explained.meaning," ",explained.advice))
}
function Places({places,shown}) {
const runs=[]
for (const place of places) {
const run=runs.at(-1)
if (run?.last.chain===place.chain&&run.last.source===place.source&&Number(run.last.sequence)+1===Number(place.sequence)) run.last=place
else runs.push({first:place,last:place})
}
return k$2("p",{class:"beside"},runs.slice(0,shown).map(({first,last},at)=>k$2($,null,at?"; ":"",k$2("a",{href:placeLink(first)??void 0},k$2(Text,null,describePlace(first))),last===first?"":` to ${last.sequence}`)),k$2(AndMore,{left:runs.length-shown}))
}
var FINDINGS_SHOWN=100
function AndMore({left}) {
return left>0?k$2("span",null," and ",count(left)," more; copy as JSON has them all"):null
}
function Findings({findings,words}) {
const cards=new Map()
for (const finding of findings) {
const key=finding.status==="not_checked"?`${finding.check} ${finding.code} ${finding.words}`:`${cards.size}`
const known=cards.get(key)
if (known) known.push(finding)
else cards.set(key,[finding])
}
const shown=Math.ceil(FINDINGS_SHOWN/cards.size)
return k$2($,null,k$2("h3",null,words),[...cards].slice(0,FINDINGS_SHOWN).map(([key,[finding,...others]])=>k$2(FindingCard,{key,finding,others,shown})),k$2(AndMore,{left:cards.size-FINDINGS_SHOWN}))
}
var ONLY_COUNTS=/^[\d,]+ checked$/
function CheckRow({check}) {
const said=ONLY_COUNTS.test(check.reason)?"":check.reason
const meaning=check.status==="passed"?describeCheck$1(check.name):""
return k$2("tr",null,k$2("th",{scope:"row"},k$2("span",{class:`check ${check.status}`},check.status==="passed"?"✓":check.status==="failed"?"✕":"!")," ",check.name.replace("_"," ")),k$2("td",{class:"number"},check.status==="passed"?count(check.count):check.status),k$2("td",null,meaning,meaning&&said?k$2("br",null):null,said?k$2("span",{class:meaning?"soft":""},k$2(Text,null,said)):null))
}
function groupUnmade(checks) {
const groups=new Map()
for (const check of checks) {
const key=isOnlyOfCommand(check)?`${check.matters} ${check.reason}`:check.name
groups.set(key,[...groups.get(key)??[],check])
}
return [...groups.values()]
}
function FitWords({fits}) {
const [matching,others]=[0,1].map(at=>fits.reduce((sum,one)=>sum+(one[at]??0),0))
const key=thing.value?.live?"key that the server lists":"key in the bundle"
return k$2($,null,matching?k$2("p",{class:"warn tight"},plural(matching,"signature matches","signatures match")," the ",key,", which you have not pinned: not checked."):null,others?k$2("p",{class:"bad tight"},plural(others,"signature does","signatures do")," not match the ",key,"."):null)
}
function UnmadeRow({checks,fits}) {
const [first]=checks
return k$2("tr",{class:first.matters?"matters":""},k$2("th",{scope:"row"},checks.map(check=>k$2("span",{key:check.name,class:"unmade-name"},check.name.replace("_"," ")))),k$2("td",null,k$2(Text,null,isOnlyOfCommand(first)?first.reason.replace(/; run: aver verify$/,""):first.reason),first.name==="signature"?k$2(FitWords,{fits:fits.map(([,counts])=>counts)}):null),k$2("td",null,remedy(first)))
}
function VerdictBand() {
const now=judgement.value
if (now.state==="none") {
if (contents.value===null||totalRecords.value<=2e4) return k$2("div",{class:"band placeholder tall","aria-hidden":"true"})
return k$2("section",{class:"band not-judged"},k$2("h2",null,k$2(Mark,{name:"not judged"})," Not judged yet"),k$2("p",null,plural(totalRecords.value,"record")," take a while. A chain is verified when you open it; all of them when you ask for it."),k$2("p",null,k$2("button",{type:"button",onClick:()=>void verifyThing()},"Verify everything (v)")))
}
return k$2(Band,{now})
}
function Band({now,again=verifyThing,total=totalRecords.value}) {
if (now.state==="working") {
const {records=0,bytes=0,totalBytes=0}=now.progress??{}
const isKnown=total>=records&&total>0
const share=isKnown?Math.floor(100*records/total):totalBytes?Math.floor(100*bytes/totalBytes):0
return k$2("section",{class:"band working"},k$2("h2",null,k$2(Mark,{name:"working",share})," Verifying"),k$2("p",{class:"figure"},isKnown?`${count(records)} of ${plural(total,"record")} judged so far`:`${plural(records,"record")} judged so far, ${share} % of the bytes`,"."),k$2("progress",{max:100,value:share,"aria-label":"Verification"}),k$2("p",null,k$2("button",{type:"button",onClick:()=>stopVerifying()},"Stop")),k$2("table",{class:"checks pending","aria-hidden":"true"},k$2("tbody",null,CHECKS.filter(name=>!["columns","store"].includes(name)).map(name=>k$2("tr",{key:name},k$2("th",null,name.replace("_"," ")),k$2("td",null,"…"))))))
}
if (now.state==="not judged") return k$2("section",{class:"band not-judged"},k$2("h2",null,k$2(Mark,{name:"not judged"})," Not judged"),k$2("p",null,k$2(Text,null,now.words)),k$2("p",null,k$2("button",{type:"button",onClick:()=>void again()},"Try again")))
return k$2(Judged,now)
}
function origin() {
const door=document.documentElement.dataset["door"]
return thing.value?.live?"from the server of this ledger":door==="site"?"with these records":"from where you opened it"
}
function verifyCommand() {
const {live,site}=thing.value??{}
if (live) return "aver verify"
if (!site) return `aver verify ${quoteName(contents.value?.name??"FILE")}`
const depth=new URL(site).pathname.split("/").length-2
return `mkdir site && wget -qO- ${quoteName(`${site}explorer/data/names.js`)} | grep -o '"[^"]*"' | tr -d '"' | wget -nv -xnH --cut-dirs=${depth} -P site -B ${quoteName(site)} -i - && aver verify site`
}
function isHere() {
return ["localhost","127.0.0.1","[::1]"].includes(location.hostname)
}
function command() {
const keys=pins.value.map(pin=>pin.entry&&pin.origin.startsWith("from ")?quoteName(pin.origin.slice(5)):pin.publicKey)
return thing.value?.live?verifyCommand():[verifyCommand(),...new Set(keys)].join(" --key ")
}
function Judged({verdict,usesPlatform,fits,signers,at}) {
const made=verdict.checks.filter(check=>check.status!=="not_checked")
const unmade=verdict.checks.filter(check=>check.status==="not_checked")
const others=unmade.filter(check=>check.reason!==DOES_NOT_APPLY)
const foreign=unmade.filter(check=>check.reason===DOES_NOT_APPLY).map(check=>check.name.replace("_"," "))
const word=verdict.status
const first=verdict.first_bad
const rest=verdict.findings.filter(one=>one!==first)
const wrong=rest.filter(one=>one.status!=="not_checked")
const open=rest.filter(one=>one.status==="not_checked")
return k$2("section",{class:`band ${word}`,"aria-labelledby":"verdict"},k$2("h2",{id:"verdict"},k$2(Mark,{name:word})," ",word[0]?.toUpperCase(),word.slice(1)),k$2("p",{class:"sentence"},k$2(Text,null,sentence(verdict,signers))),thing.value?.areCopies?k$2("p",{class:"strip copies"},"This page judged its own copies of the records, in explorer/data, and not the bundle's files: a browser lets no page that was opened by a double click read them. Someone may have changed the files and left the copies."):null,unjudged.value?k$2("p",{class:"strip"},plural(unjudged.value,"record")," came after this verdict. ",k$2("button",{type:"button",class:"small",onClick:()=>void verifyThing()},"Verify again (v)")):null,first?k$2(FindingCard,{finding:first,isFirst:true}):null,k$2("div",{class:"columns"},k$2("div",null,k$2("h3",null,"Checked"),k$2("table",{class:"checks"},k$2("tbody",null,made.map(check=>k$2(CheckRow,{key:check.name,check})))),made.length?null:k$2("p",null,"No check was made.")),k$2("div",null,k$2("h3",null,"Not checked"),k$2("table",{class:"checks"},k$2("tbody",null,groupUnmade(others).map(checks=>k$2(UnmadeRow,{key:checks[0]?.name,checks,fits})))),others.length?null:k$2("p",null,"Every check that applies was made."),foreign.length?k$2("p",{class:"beside"},"Does not apply here: ",foreign.join(", "),"."):null)),wrong.length?k$2(Findings,{findings:wrong,words:plural(wrong.length,first?"more finding":"finding")}):null,open.length?k$2(Findings,{findings:open,words:`${open.length<FINDINGS_SHOWN?"":"At least "}${plural(open.length,"place")} that could not be checked`}):null,k$2("p",{class:"beside judged-by"},"This page judged it at ",k$2(Time,{short:true},at.toISOString()),", and came ",origin(),". Ed25519 by ",usesPlatform?"the browser, after checks of our own":"JavaScript","."),k$2("p",{class:"beside without-page"},changed.value?"No command judges this changed copy: it is in this page's memory alone.":k$2($,null,thing.value?.areCopies||thing.value?.site?"The bundle's own files, without this page: ":`The same without this page${thing.value?.live&&!isHere()?", on the server's machine":""}: `,k$2(Command,null,command()))," ",k$2(Copy,{text:JSON.stringify(verdictDocument(verdict),(_,value)=>typeof value==="bigint"?String(value):value,2),label:"copy as JSON"})))
}
function VerdictChip() {
const now=judgement.value
if (contents.value===null) return k$2("span",{class:"chip"})
const name=now.state==="done"?now.verdict.status:now.state==="working"?"working":"not judged"
const {bytes=0,totalBytes=0}=now.state==="working"&&now.progress||{}
return k$2("a",{class:`chip ${name.replace(" ","-")}`,href:link()},k$2(Mark,{name,share:totalBytes?Math.floor(100*bytes/totalBytes):0})," ",k$2("span",null,name==="working"?"verifying":name))
}
var codes_default={"codes":{"ALLOW":{"meaning":"Every check passed, and what was asked for was done.","advice":"Nothing is left to do."},"ALLOW_INSECURE":{"meaning":"The executor runs with EXECUTOR_INSECURE_ALLOW=1 and did the act without checking its evidence.","advice":"Unset EXECUTOR_INSECURE_ALLOW and start the executor again. This mode is outside of every guarantee."},"REQUIRE_CONFIRM":{"meaning":"The policy wants a person to approve this request, and no approval of it was found.","advice":"Have the request approved (aver approvals list), then send the same act again."},"POLICY_DENY":{"meaning":"The policy does not allow this request, or wants a change of it that cannot be made.","advice":"Change the request, or ask the person who keeps the rules. aver policy explain shows which rule decided."},"RECIPIENT_NOT_ALLOWED":{"meaning":"A rule of the policy refuses this recipient.","advice":"Use a recipient that the rules allow, or have the recipient added to them."},"DOMAIN_NOT_ALLOWED":{"meaning":"A rule of the policy refuses this domain, or the domain leads to a private network or redirects to another one.","advice":"Use a domain that the rules allow, or have the domain added to them. A host of a private network must be in [gateway] private_hosts."},"IOC_BLOCKED":{"meaning":"The skill names a host that is listed as an indicator of compromise.","advice":"Do not install this skill. Report where it came from."},"BAD_REQUEST":{"meaning":"The request does not have the required form: a field is missing, unknown, of another type, too long, given twice, or has no canonical form.","advice":"Correct the place that the summary names, then send the request again."},"UNKNOWN_INTENT":{"meaning":"No intent has this name.","advice":"Use a name from the table of intents in docs/gateway/evidence.md."},"ARTIFACTS_NOT_ALLOWED":{"meaning":"The inputs have artifacts, which an act never forwards.","advice":"Leave artifacts out, or send an empty list."},"CAPABILITY_DENY":{"meaning":"The capabilities of this caller do not have this intent, or the list of commands does not have this command.","advice":"Ask the operator to add the intent to [gateway.capabilities.callers], or the first words of the command to [gateway.commands] allow."},"PRINCIPAL_CAPABILITY_DENY":{"meaning":"The capabilities of the external principal do not have this intent.","advice":"Ask the operator to add the intent to [gateway.capabilities.principals]."},"WORKLOAD_TOKEN_INVALID":{"meaning":"The workload token is malformed, expired, for another session, or not signed by this ledger's key.","advice":"Install the skill again to get a new token."},"EXTERNAL_PRINCIPAL_MISMATCH":{"meaning":"The external principal of the request is not the one for whom the delegation token was issued.","advice":"Send the principal that the first token of the chain names as iss, or leave it out."},"DELEGATION_REQUIRED":{"meaning":"The request names an external principal and carries no delegation token.","advice":"Ask the principal for a token (aver gateway delegate) and send it in constraints.delegation_token."},"DELEGATION_TOKEN_MALFORMED":{"meaning":"The delegation token cannot be read, or its chain of parents is broken.","advice":"Send the token exactly as it was issued."},"DELEGATION_TOKEN_BAD_SIGNATURE":{"meaning":"A token of the chain is not signed by the key of its issuer, or the issuer has no key under [gateway.principals].","advice":"Have the token issued again, and check the issuer's key in the settings."},"DELEGATION_SESSION_MISMATCH":{"meaning":"The delegation token was issued for another session.","advice":"Ask for a token for this session."},"DELEGATION_SUBJECT_MISMATCH":{"meaning":"The delegation token was issued to another caller.","advice":"Ask for a token for this caller."},"DELEGATION_SCOPE_DENY":{"meaning":"The scope of the delegation token does not contain this intent.","advice":"Ask for a token whose scope contains the intent."},"DELEGATION_TOKEN_EXPIRED":{"meaning":"The delegation token, or a parent of it, is past its time.","advice":"Ask for a new token."},"DELEGATION_REVOKED":{"meaning":"The delegation token, or a parent of it, was revoked.","advice":"Ask the issuer. A revoked token never becomes good again."},"INGRESS_SIGNATURE_REQUIRED":{"meaning":"The call names a principal in its headers and lacks a header that the signature needs.","advice":"Send all of Aver-Principal, Aver-Session, Aver-Time, Aver-Nonce and Aver-Signature."},"INGRESS_SIGNATURE_INVALID":{"meaning":"A header is malformed, or the signature is not by the principal's key over this method, path, session, time, nonce and body.","advice":"Sign the exact bytes of the body, and check the principal's key in the settings."},"INGRESS_EXPIRED":{"meaning":"The time in the headers is more than 60 seconds from the gateway's clock.","advice":"Set the clock of the machine that signs, then sign the call again."},"INGRESS_REPLAY":{"meaning":"The principal has used this nonce before.","advice":"Use a new nonce for each call."},"INGRESS_CONFLICT":{"meaning":"The door does not let this client name that session or caller, or a signed call is for the gateway of another ledger, or its body names another principal or delegation token than its headers.","advice":"Use a session and a caller that [gateway.clients] allows. Sign a call for this gateway's ledger, and leave principal and token out of its body."},"HANDLE_INVALID":{"meaning":"The handle does not exist, has expired, or belongs to another session or caller.","advice":"Read the value again to get a new handle."},"HIGH_HANDLE_BLOCKED":{"meaning":"The request would send a value of high sensitivity out.","advice":"Leave the handle out, or have the value declassified first."},"DECLASSIFY_BLOCKED":{"meaning":"The value behind this handle must not be declassified.","advice":"Ask the person who keeps the rules."},"TX_INVALID":{"meaning":"No PREVIEW has this tx_id, or it is past its time, was refused, or is for another intent. A clock that was set back ends a PREVIEW, too.","advice":"Send the act again without tx_id."},"TX_SESSION_MISMATCH":{"meaning":"The PREVIEW was made in another session.","advice":"COMMIT in the session of the PREVIEW."},"TX_CALLER_MISMATCH":{"meaning":"The PREVIEW was made by another caller.","advice":"COMMIT as the caller of the PREVIEW."},"TX_AUTH_CONTEXT_MISMATCH":{"meaning":"The external principal or the delegation differs from that of the PREVIEW. Unset differs from set.","advice":"COMMIT with the same principal and token as the PREVIEW."},"POLICY_UNAVAILABLE":{"meaning":"A policy server did not answer in time, answered garbage, runs another program, or disagrees with the other one.","advice":"Look at aver gateway status, and at the detail. Nothing was done; the act can be sent again."},"EXECUTOR_UNAVAILABLE":{"meaning":"The executor did not answer, or has no effect for this request: for example, no mail server is set.","advice":"Look at aver gateway status, and at the setting that the summary names. If the COMMIT had begun, aver show says what became of it."},"BAD_COMMIT_PROOF":{"meaning":"The evidence of the two policy servers does not hold. The detail says where.","advice":"Make a new PREVIEW. If it happens again, look up the detail."},"MISSING_EVIDENCE":{"meaning":"The COMMIT carries no evidence at all.","advice":"Make a PREVIEW, and COMMIT through the gateway."},"REPLAY_DENY":{"meaning":"The executor has begun an act with this action_id before.","advice":"Look at the outcome of the first one. To do it again, make a new PREVIEW."},"WORKSPACE_PATH_BLOCKED":{"meaning":"The path leads out of the workspace.","advice":"Use a path relative to the workspace, without .. and without links that leave it."},"WORKSPACE_CHANGED":{"meaning":"The file is not what it was when the change was shown.","advice":"Read the file and make a new PREVIEW."},"EFFECT_FAILED":{"meaning":"The act was allowed and begun, and its effect failed; or it could only fail, because its server is not connected.","advice":"The outcome's record says how. To try again, make a new PREVIEW."},"OUTCOME_UNKNOWN":{"meaning":"The executor ended between the mark of the act and its outcome, or sent something and got no answer. Nobody knows whether the effect happened.","advice":"Look whether it did. The act is not tried again; to do it again, make a new PREVIEW."},"TOOL_CHANGED":{"meaning":"The definition of the tool differs from the one that was first seen.","advice":"Compare both definitions, then accept the new one."},"CAPSULE_REQUIRED":{"meaning":"The settings, or the PREVIEW of this act, want an agent in a verified confinement, and this door has no fresh verdict that passes. Or this door has one, and the PREVIEW was made without.","advice":"Start the agent with aver gateway run -- COMMAND. If it runs there, aver gateway smoke and verify-contract show what no longer holds. A PREVIEW that was made outside is no use inside: send the act again without tx_id."}}}
var ITEMS_MAX=200
var TEXT_MAX=2e4
var LINE_MAX=96
var DIGEST=/^[0-9a-f]{40,128}$/
function Value({value,depth=0}) {
if (value===null) return k$2("span",{class:"soft"},"none")
if (typeof value==="boolean") return k$2("span",null,value?"yes":"no")
if (value instanceof JsonNumber) return k$2("span",{class:"figure"},value.text)
if (typeof value==="string") return k$2(LongText,{text:value})
if (Array.isArray(value)) {
if (!value.length) return k$2("span",{class:"soft"},"none")
const line=oneLine(value)
if (line) return k$2(Linked,null,line)
return k$2("ol",{class:"list"},value.slice(0,ITEMS_MAX).map((item,at)=>k$2("li",{key:at},k$2(Value,{value:item,depth:depth+1}))),value.length>ITEMS_MAX?k$2("li",{class:"soft"},value.length-ITEMS_MAX," more, in the exact text of the record"):null)
}
if (!value.size) return k$2("span",{class:"soft"},"none")
const blob=readBlobReference(value)
if (blob!==null) return k$2("span",null,blob.media,", ",blob.size," bytes, kept beside the record: ",k$2(WholeHex,null,blob.digest))
const given=[...value].filter(([,item])=>!isEmpty(item))
const others=[...value.keys()].filter(key=>isEmpty(value.get(key)))
return k$2("div",{class:"members"},k$2("dl",null,given.slice(0,ITEMS_MAX).map(([key,item])=>k$2("div",{key},k$2("dt",null,k$2(Text,null,key)),k$2("dd",null,k$2(Value,{value:item,depth:depth+1}))))),given.length>ITEMS_MAX?k$2("p",{class:"beside"},given.length-ITEMS_MAX," more, in the exact text of the record"):null,others.length?k$2("p",{class:"beside"},"Empty: ",k$2(Text,null,others.slice(0,ITEMS_MAX).join(", "))):null)
}
function oneLine(values) {
const words=values.map(item=>typeof item==="string"?item:item instanceof JsonNumber?item.text:null)
const isPlain=words.every(word=>word!==null&&word!==""&&!/[\n,]/.test(word)&&(word.length<=32||DIGEST.test(word)))
const line=words.join(", ")
return isPlain&&line.length<=LINE_MAX?line:""
}
function readBlobReference(value) {
const inner=value.size===1?value.get("blob"):value
if (!isObject(inner)||inner.size!==4) return null
const [digest,media,size]=[inner.get("digest"),inner.get("media"),inner.get("size")]
if (typeof digest!=="string"||!DIGEST.test(digest)||typeof media!=="string"||!(size instanceof JsonNumber)||inner.get("alg")!=="sha256") return null
return {digest,media:visible(media),size:size.text}
}
function isEmpty(value) {
return value===null||value===""||Array.isArray(value)&&!value.length||value instanceof Map&&!value.size
}
function LongText({text}) {
if (text==="") return k$2("span",{class:"soft"},"empty")
if (DIGEST.test(text)) return k$2("code",{class:"hex"},text)
if (!text.includes("\n")&&text.length<=160) return k$2(Linked,null,text)
const isDiff=/^(?:diff --git|--- |@@ )/m.test(text)&&/^[+-]/m.test(text)
const shown=cutText(text,TEXT_MAX)
return k$2("div",{class:"long"},k$2("pre",{class:isDiff?"diff":""},isDiff?visible(shown).split("\n").map((line,at)=>k$2(DiffLine,{key:at,line})):k$2(Linked,null,shown)),text.length>TEXT_MAX?k$2("p",{class:"beside"},text.length-TEXT_MAX," more characters, in the exact text of the record"):null)
}
function DiffLine({line}) {
return k$2("span",{class:/^(?:\+\+\+|---|diff |index )/.test(line)?"head":line.startsWith("+")?"added":line.startsWith("-")?"removed":line.startsWith("@@")?"hunk":""},`${line}\n`)
}
var LIVE_RECORDS=1e3
var FILE_RECORDS=4e3
var SLICE_RECORDS=25
var WORK_MS=20
var Left=class extends Error {}
var since=performance.now()
async function pause$1() {
if (performance.now()-since<WORK_MS) return
await new Promise(resolve=>setTimeout(resolve))
since=performance.now()
}
function toSealed(chain,text) {
if (text.problem) return new Unreadable(text.problem)
const {hash,signature,signaturePq,signedAt,signedBy}=text
return new Sealed(text.canonical,{hash,signature,signature_pq:signaturePq,signed_at:signedAt,signed_by:signedBy},chain)
}
function chainsOf(name) {
return (contents.value?.chains??[]).filter(({id,origin})=>name.test((origin??id).replace(/^import\.[0-9a-f]{16}\./,""))).map(({id})=>id)
}
async function* readRecords(chain) {
const isLive=contents.value?.format==="ledger"
const step=isLive?LIVE_RECORDS:FILE_RECORDS
for (let start=0; !isLive||start<countRecords([chain]); start+=step) {
const found=await connection.ask({type:"records",chain,start,stop:start+step})
if (!start&&!found.length&&countRecords([chain])) throw new Error(`no record of ${chain} can be read, though it has some`)
for (let at=0; at<found.length; at+=SLICE_RECORDS) {
yield found.slice(at,at+SLICE_RECORDS).map(text=>toSealed(chain,text))
await pause$1()
}
if (!isLive&&found.length<step) return
}
}
function unreadWords(records,total=records.length) {
const unread=records.filter(record=>record instanceof BadInput)
return unread[0]?`${unread.length} of ${total} records cannot be read, and are left out: ${unread[0].message}`:""
}
async function readRecordAt(chain,place) {
const [found]=await connection.ask({type:"records",chain,start:place,stop:place+1})
return found===void 0?null:toSealed(chain,found)
}
async function readBlob(digest) {
return connection.ask({type:"blob",digest}).catch(()=>null)
}
function listRows$1({chains,ledger,format}) {
const isForeign=format==="bundle"&&ledger===null
return chains.map(chain=>({name:chain.id,origin:isForeign?chain.id:chain.origin}))
}
var firsts=new WeakMap()
function readFirst(chain) {
const open=contents.value
if (open===null) return Promise.resolve(null)
const known=firsts.get(open)??firsts.set(open,new Map()).get(open)
const before=known.get(chain)
if (before!==void 0) return before
const reading=readRecordAt(chain,0).then(record=>record instanceof Sealed?readStep(record):null,error=>{
known.delete(chain)
throw error
})
known.set(chain,reading)
return reading
}
async function findSession(chain) {
const open=contents.value
if (open===null) return null
if (open.format!=="bundle"&&open.format!=="ledger") {
const first=await readFirst(chain)
return first===null?null:sessionOfFile(first,chain)
}
return (await groupChains(listRows$1(open),readFirst,chain.replace(/^import\.[0-9a-f]{16}\./,"").startsWith("gate.")?null:chain)).find(({main,agents,decisions})=>main===chain||decisions===chain||agents.some(([,name])=>name===chain))??null
}
function countRecords(chains) {
return (contents.value?.chains??[]).reduce((sum,chain)=>sum+(chains.includes(chain.id)?chain.length??0:0),0)
}
function useAnswer(ask,reasons) {
const [answer,setAnswer]=d$2({state:"loading",value:null,words:""})
const [tried,setTried]=d$2(0)
A$1(()=>{
let isCurrent=true
ask(()=>isCurrent).then(value=>{
if (isCurrent) setAnswer({state:"done",value,words:""})
},error=>{
if (isCurrent) setAnswer(before=>({state:"failed",value:before.value,words:error.message}))
})
return ()=>{
isCurrent=false
}
},[...reasons,tried])
return {...answer,retry:()=>setTried(tried+1)}
}
function Loading({rows,words}) {
return k$2("div",{class:"placeholders","aria-busy":"true"},k$2("p",{class:"hidden",role:"status"},words," …"),Array.from({length:rows},(_,at)=>k$2("div",{key:at,class:"placeholder row-height"})))
}
function Empty({children,command}) {
return k$2("div",{class:"nothing"},k$2("p",null,children),command?k$2("p",null,k$2(Command,null,command)):null)
}
function Problem({words,retry}) {
return k$2("div",{class:"finding failed",role:"alert"},k$2("p",null,k$2(Text,null,words)),retry?k$2("p",null,k$2("button",{type:"button",class:"small",onClick:retry},"Try again")):null)
}
function NotHere({what,name}) {
return k$2("div",{class:"finding warning",role:"alert"},k$2("p",null,"There is no ",what," ",k$2("code",null,k$2(Text,null,name))," in ",k$2(Text,null,contents.value?.name??"these records"),". The link is for other records, or for a longer copy of these."))
}
function OfDomain({domain,title,route,wanted,what,empty:[words,command],children:show}) {
const chains=chainsOf(new RegExp(`^${domain}\\.`))
const chosen=wanted?chains.includes(wanted)?wanted:"":chains[0]??""
return k$2("section",{class:`${route}-view`},k$2("h1",null,title),chains.length?null:k$2(Empty,{command},words),chains.length&&!chosen?k$2(NotHere,{what,name:wanted}):null,chains.length>1||chains.length&&!chosen?k$2("p",null,k$2("label",null,"Chain ",k$2("select",{value:chosen,onChange:event=>{
location.hash=link(route,event.currentTarget.value)
}},chosen?null:k$2("option",{value:""},"choose one"),chains.map(name=>k$2("option",{key:name,value:name},visible(name)))))):null,chosen?show(chosen):null)
}
function ReadChain({chain,most,command,read,children:show}) {
const total=countRecords([chain])
const {value,words,retry}=useAnswer(async ()=>{
if (total>most) return null
const records=[]
for await (const batch of readRecords(chain)) records.push(...batch)
return {found:await read(records),unread:unreadWords(records)}
},[chain,contents.value])
if (total>most) return k$2("p",{class:"strip"},"This chain has ",plural(total,"record"),", more than this view reads. ",k$2("a",{href:link("chain",chain)},"Read the chain"),", or: ",k$2(Command,null,command))
if (words) return k$2(Problem,{words,retry})
if (value===null) return k$2("div",{"aria-busy":"true"},k$2("div",{class:"band placeholder tall"}),k$2("div",{class:"band placeholder tall"}))
return k$2($,null,value.unread?k$2(Problem,{words:value.unread,retry}):null,show(value.found))
}
var claims=[]
function useKeys(keys) {
const claim=T({keys})
claim.current.keys=keys
F$1(()=>{
const mine=claim.current
claims.push(mine)
return ()=>{
claims.splice(claims.indexOf(mine),1)
}
},[])
}
function focusGrid() {
document.querySelector("main [role=grid]")?.focus({preventScroll:true})
}
function useGridKeys(keys) {
useKeys(Object.fromEntries(Object.entries(keys).map(([key,move])=>[key,event=>{
move(event)
focusGrid()
}])))
}
function isTyping(target) {
return target instanceof HTMLElement&&(target.isContentEditable||target.matches("input:not([type=checkbox]), textarea, select"))
}
function isOwnKey(event) {
return (event.key==="Enter"||event.key===" ")&&event.target instanceof HTMLElement&&event.target.matches("a, button, summary")
}
function listenToKeys(go,keys) {
let isGoing=false
claims.unshift({keys})
addEventListener("keydown",event=>{
if (event.ctrlKey||event.metaKey||event.altKey||event.defaultPrevented) return
if (isTyping(event.target)) {
if (event.key!=="Escape") return
event.preventDefault()
document.getElementById("main")?.focus({preventScroll:true})
return
}
if (isOwnKey(event)) return
const wasGoing=isGoing
isGoing=event.key==="g"&&!wasGoing
if (isGoing) return
if (wasGoing&&go(event.key)) {
event.preventDefault()
return
}
const claim=claims.findLast(({keys})=>event.key in keys)
if (claim===void 0) return
event.preventDefault()
claim.keys[event.key]?.(event)
})
}
function useRowKeys(box) {
const move=step=>{
const rows=[...box.current?.querySelectorAll("[data-row]")??[]]
if (!rows.length) return
const now=rows.indexOf(document.activeElement)
const next=now<0?step>0?0:rows.length-1:Math.min(Math.max(now+step,0),rows.length-1)
rows.forEach((row,at)=>{
row.tabIndex=at===next?0:-1
})
rows[next]?.focus()
rows[next]?.scrollIntoView({block:"nearest"})
}
useKeys({j:()=>move(1),k:()=>move(-1),n:()=>move(1),N:()=>move(-1)})
}
function Table({heads=[],label,of="plain",children}) {
return k$2("div",{class:"scroll",...label?{tabIndex:0,role:"region","aria-label":label}:{}},k$2("table",{class:of},heads.length?k$2("thead",null,k$2("tr",null,heads.map((head,at)=>k$2("th",{key:at,scope:"col"},head)))):null,k$2("tbody",null,children)))
}
var KINDS=new Set(["act.preview","act.commit","act.outcome"])
function readActs(records) {
const acts=new Map()
let place=-1
for (const record of records) {
place++
const found=record instanceof BadInput?null:readActRecord(record,place)
if (found===null) continue
const actionId=asText(found.result.get("action_id"))
const act=acts.get(actionId)??{actionId,intent:"",caller:"",preview:null,commits:[],outcomes:[],code:"",state:"open"}
acts.set(actionId,addRecord(act,found))
}
return [...acts.values()].map(act=>act.preview===null?{...act,state:"broken"}:act)
}
function readActRecord(record,place) {
const content=contentOf(record)
if (content===null) return null
const kind=readKind(content)
const result=asObject(at(content,"outcome","result"))
if (!KINDS.has(kind)) return null
return {place,kind,at:asText(at(content,"trigger","timestamp"))||record.signed_at,status:asText(at(content,"outcome","status")),reasonCode:asText(result.get("reason_code")),detail:asText(result.get("detail")),result,statements:asList(at(content,"authority","chain")),decision:asText(at(content,"context","environment","aver","refs","decision"))}
}
function addRecord(act,record) {
const code=record.reasonCode||act.code
if (record.kind==="act.preview") {
const state=record.status==="blocked"?"refused":record.status==="pending"?"waits":"open"
return {...act,preview:record,intent:asText(record.result.get("intent_id")),caller:asText(record.result.get("caller")),code,state}
}
if (record.kind==="act.commit") return {...act,commits:[...act.commits,record]}
const isDone=record.status==="success"||act.state==="done"
return {...act,outcomes:[...act.outcomes,record],code:act.state==="done"?act.code:code,state:isDone?"done":"refused"}
}
function joinShares(commit,actionId) {
const pair=["policy0","policy1"].map(name=>asObject(at(commit.result,"commit",name)))
if (pair.some(share=>!share.size)) return null
const bit=name=>{
const [one,other]=pair.map(share=>asCount(at(share,"outputs",name)))
return one===null||other===null||one===void 0||other===void 0||one>1||other>1?null:one^other
}
const [low,high]=[bit("patch0"),bit("patch1")]
const [request,program]=["request_sha256","program_id"].map(name=>asText(commit.result.get(name)))
return {allow:bit("allow_pre"),confirm:bit("need_confirm"),patch:low===null||high===null?null:low|high<<1,isOfThisAct:pair.every(share=>share.get("action_id")===actionId&&share.get("request_sha256")===request&&share.get("program_id")===program),servers:pair.map((share,index)=>({server:`policy:${share.get("server_id") instanceof JsonNumber?share.get("server_id").text:index}`,outputs:[...asObject(share.get("outputs"))].map(([name,value])=>[name,valueText(value)])}))}
}
var PATCH_NAMES=["NOOP","REDACT","CLAMP_LEN","REWRITE_DOMAIN_TO_PROXY"]
var TELLING=/^(?:keys$|(?:approvers|approvals|protocol)\.)/
var READ_MAX$3=1e4
var last$1=null
function readOwners() {
if (last$1===null||last$1.open!==contents.value) last$1={open:contents.value,owners:collectOwners()}
last$1.owners.catch(()=>{
last$1=null
})
return last$1.owners
}
async function collectOwners() {
const owners=new Map()
const listed=(await server.value?.api.json("keys").catch(()=>null))?.keys??[]
for (const {public_key:key,public_key_pq:keyPq="",identity,status} of listed) owners.set(key.slice(0,16),{identity,isRetired:status!=="active"&&status!=="trusted",from:"the server",key,keyPq})
let records=0
for (const chain of chainsOf(TELLING)) for await (const batch of readRecords(chain)) {
for (const record of batch) if (record instanceof Sealed) noteOwner(record,chain,owners)
if ((records+=batch.length)>=READ_MAX$3) return owners
}
return owners
}
function noteOwner(record,chain,owners) {
const content=contentOf(record)??void 0
const note=(value,identity)=>{
if (Array.isArray(value)) for (const item of value) note(item,identity)
if (!isObject(value)) return
const [key,keyPq,named]=[asText(value.get("public_key")),asText(value.get("public_key_pq")),asText(value.get("identity"))||asText(value.get("agent"))||identity]
if (named&&/^[0-9a-f]{64}$/.test(key)) owners.set(key.slice(0,16),{identity:named,isRetired:false,from:`the chain ${chain}`,key,keyPq})
for (const [name,item] of value) if (name!=="passkey") note(item,name.startsWith("person:")?name:named)
}
const result=at(content,"outcome","result")
note(at(content,"authority","chain"),"")
note(result,"")
const replaced=asText(at(result,"replaces"))
const before=owners.get(replaced)
if (before) owners.set(replaced,{...before,isRetired:true})
}
var STATES={pinned:["verified","The signature is valid, by a key that you pinned."],"came along":["qualified","The signature matches the key that came with the records, which you have not pinned: not checked."],invalid:["failed","Nobody signed it, or the signature is not that of the pinned key."],"does not match":["failed","The signature does not match the key that came with the records."],unknown:["not judged","Not checked: the signer's key is not here."],"no statement":["not judged","It is no signed statement."]}
var NAMES$1={approval:"A person's answer",policy:"A policy server's word",delegation:"A delegation","protocol-join":"A participant joins","protocol-event":"A participant's contribution","protocol-report":"The auditor's report"}
function Statements({values}) {
const {value:checked,words,retry}=useAnswer(async ()=>{
const open=contents.value
const second=new Map(open?.pqKeys)
const along=(open?.keys??[]).map(([fingerprint,key])=>[key,second.get(fingerprint)??""])
for (const {key,keyPq} of (await readOwners()).values()) along.push([key,keyPq])
return connection.ask({type:"statements",text:canonicalJson(values),keys:pinnedKeys(),along})
},[values,pins.value])
if (words) return k$2(Problem,{words,retry})
if (checked===null) return k$2("p",{class:"beside",role:"status"},"Checking ",plural(values.length,"statement")," …")
return k$2("ol",{class:"statements"},values.map((value,place)=>{
const {purpose,by,state}=checked[place]??{purpose:"",by:[],state:"no statement"}
const [mark,said]=STATES[state]
return k$2("li",{key:place},k$2("p",null,k$2(Mark,{name:mark})," ",k$2("strong",null,k$2(Text,null,lookUp(NAMES$1,purpose)??(purpose||"Entry"))),signerOf(value)?k$2($,null," by ",k$2(Text,null,signerOf(value))):null,by.map(fingerprint=>k$2("span",{key:fingerprint}," ",k$2(Hex,null,fingerprint)))),k$2("p",{class:`beside${mark==="failed"?" bad":""}`},said),k$2("details",null,k$2("summary",null,"What it says"),k$2(Value,{value:at(value,"content")??value})))
}))
}
function signerOf(value) {
const named=["approver","agent","principal","iss"].map(name=>asText(at(value,"content",name))).find(Boolean)
const server=at(value,"content","server_id")
return named??(server instanceof JsonNumber?`policy:${server.text}`:"")
}
var READ_MAX$2=2e4
var CODES=codes_default.codes
function ActsView({parts:[wanted="",actionId=""]}) {
return k$2(OfDomain,{domain:"gateway",title:"Acts",route:"acts",wanted,what:"chain of acts",empty:["No act went through a gateway in these records. This sends one:","aver gateway act INTENT --inputs '{}'"]},chain=>k$2(ReadChain,{key:chain,chain,most:READ_MAX$2,command:"aver show ACTION_ID",read:records=>({acts:readActs(records),isWhole:!unreadWords(records)})},({acts,isWhole})=>k$2(ActsOfChain,{chain,acts,isWhole,actionId})))
}
function ActsOfChain({chain,acts,isWhole,actionId}) {
const chosen=actionId?acts.find(act=>act.actionId===actionId):acts[0]
const box=T(null)
useRowKeys(box)
return k$2($,null,k$2("p",{class:"beside"},k$2("a",{href:link("chain",chain)},k$2(Text,null,chain))," · ",plural(acts.length,"act")),acts.length||!isWhole?null:k$2("p",{class:"strip"},"There is no act in this chain."),actionId&&chosen===void 0?k$2(NotHere,{what:"act",name:actionId}):null,k$2("div",{class:"acts-split"},k$2("nav",{"aria-label":"Acts",ref:box},k$2("ol",null,acts.map(act=>k$2("li",{key:act.actionId},k$2("a",{href:link("acts",chain,act.actionId),"data-row":true,tabIndex:act===(chosen??acts[0])?0:-1,"aria-current":act===chosen?"true":void 0},k$2("span",{class:`state ${act.state}`},SIGNS$1[act.state]," ",k$2(Text,null,act.state==="broken"?"no preview":act.code||act.state)),k$2("span",null,k$2(Text,null,act.intent||act.actionId)),k$2("span",{class:"beside"},k$2(Text,null,act.caller)," · ",k$2(Time,{short:true},act.preview?.at??act.commits[0]?.at??""))))))),chosen?k$2(ActDetail,{key:chosen.actionId,act:chosen,chain}):null))
}
var SIGNS$1={done:"✓",refused:"✕",waits:"…",open:"○",broken:"!"}
function ActDetail({act,chain}) {
const {preview,commits,outcomes}=act
return k$2("ol",{class:"stages"},k$2(Stage,{title:"Preview",record:preview,chain,missing:"There is no preview of this act. A commit without one is forged, or its preview was cut off."},preview?k$2(Preview,{record:preview,chain}):null),k$2("li",{class:commits.length?"stage":"stage missing"},k$2("h2",null,"Shares"),commits.length?commits.map(commit=>k$2(Shares,{key:commit.place,commit,act})):k$2("p",{class:"soft"},"No share was used: the act was never committed.")),commits.length?commits.map(commit=>k$2(Stage,{key:commit.place,title:"Commit",record:commit,chain,missing:""},k$2("dl",{class:"facts"},k$2("div",null,k$2("dt",null,"Executor"),k$2("dd",null,k$2(Value,{value:commit.result.get("executor")??null}))),k$2("div",null,k$2("dt",null,"Change"),k$2("dd",null,k$2(Value,{value:at(commit.result,"patch")??null})))),commit.statements.length?k$2("details",null,k$2("summary",null,plural(commit.statements.length,"signed statement")),k$2(Statements,{values:commit.statements})):null)):k$2(Stage,{title:"Commit",record:null,chain,missing:act.state==="waits"?"It waits for a person's approval. After that, the same act is sent again.":"It was not committed."},null),outcomes.length?outcomes.map(outcome=>k$2(Stage,{key:outcome.place,title:outcome.status==="success"?"Effect":"Refused",record:outcome,chain,missing:""},k$2(Code,{record:outcome}),k$2(Value,{value:outcome.result.get("result")??null}),asText(outcome.result.get("sent_sha256"))?k$2("p",{class:"beside"},"SHA-256 of what was sent: ",k$2(Hex,null,asText(outcome.result.get("sent_sha256")))):null)):k$2(Stage,{title:"Effect",record:null,chain,missing:commits.length?"Its outcome is not sealed here: it is unknown whether the effect took place.":"There was no effect."},null))
}
function Stage({title,record,chain,missing,children}) {
return k$2("li",{class:`stage${record===null?" missing":""}${record?.status==="blocked"?" refused":""}`},k$2("h2",null,title," ",record?k$2("span",{class:"beside"},k$2(Time,null,record.at)," · ",k$2("a",{href:link("c",chain,`p${record.place}`)},"record ",record.place)):null),record===null?k$2("p",{class:"soft"},missing):children)
}
var ALLOWED_SO_FAR={meaning:"Every check passed so far: the act may be committed. Nothing is done yet.",advice:""}
function Code({record}) {
const explained=record.kind==="act.preview"&&record.status==="success"?ALLOWED_SO_FAR:lookUp(CODES,record.reasonCode)
return k$2("p",null,k$2("strong",{class:record.status==="blocked"?"bad":record.status==="pending"?"warn":"good"},k$2(Text,null,record.reasonCode)),record.detail?k$2($,null," ",k$2(Text,null,record.detail)):null,explained?k$2("span",{class:"beside"}," ",explained.meaning," ",record.status==="success"?"":explained.advice):null)
}
function Preview({record,chain}) {
const {result}=record
const inputs=asObject(result.get("inputs"))
const gate=`gate.${chain.replace(/^gateway\./,"")}`
const hasGate=(contents.value?.chains??[]).some(one=>one.id===gate)
return k$2($,null,k$2(Code,{record}),inputs.size?k$2($,null,k$2("h3",null,"What was asked for"),k$2(Value,{value:inputs})):k$2("p",{class:"beside"},"The inputs are sealed by their digest alone: ",k$2(Hex,null,asText(result.get("inputs_sha256")))),k$2("dl",{class:"facts"},k$2("div",null,k$2("dt",null,"Allowed"),k$2("dd",null,bitText(result.get("allow_pre"),"yes","no"))),k$2("div",null,k$2("dt",null,"A person must confirm"),k$2("dd",null,bitText(result.get("need_confirm"),"yes","no"))),k$2("div",null,k$2("dt",null,"Change"),k$2("dd",null,k$2(Text,null,asText(at(result,"patch","patch_name"))||"none"))),k$2("div",null,k$2("dt",null,"Expires"),k$2("dd",null,asText(result.get("expires"))?k$2(Time,null,asText(result.get("expires"))):"–")),k$2("div",null,k$2("dt",null,"Request"),k$2("dd",null,k$2(Hex,null,asText(result.get("request_sha256"))))),k$2("div",null,k$2("dt",null,"Program of the rules"),k$2("dd",null,k$2("code",null,k$2(Text,null,asText(result.get("program_id")).slice(0,32)),"…"))),record.decision?k$2("div",null,k$2("dt",null,"Decision"),k$2("dd",null,k$2("code",null,k$2(Text,null,record.decision)),hasGate?k$2($,null," in ",k$2("a",{href:link("chain",gate)},k$2(Text,null,gate))):null)):null),record.statements.length?k$2("details",null,k$2("summary",null,plural(record.statements.length,"signed statement")),k$2(Statements,{values:record.statements})):null)
}
function bitText(value,yes,no) {
return value instanceof JsonNumber?value.text==="1"?yes:value.text==="0"?no:value.text:"–"
}
function Shares({commit,act}) {
const joined=joinShares(commit,act.actionId)
if (joined===null) return k$2("p",{class:"finding failed"},"The commit does not have the shares of both servers.")
const preview=act.preview?.result
const isSame=preview!==void 0&&bitText(preview.get("allow_pre"),"1","0")===String(joined.allow)&&asText(at(preview,"patch","patch_name"))===PATCH_NAMES[joined.patch??0]
const names=joined.servers[0]?.outputs.map(([name])=>name)??[]
return k$2($,null,k$2("p",null,k$2(Mark,{name:joined.isOfThisAct&&isSame?"qualified":"failed"})," ",!joined.isOfThisAct?k$2("strong",{class:"bad"},"These shares are of another act or request."):isSame?"Joined, both shares say what the preview says. Their MACs are checked by aver verify, which has the servers' keys.":k$2("strong",{class:"bad"},"Joined, the shares do not say what the preview says.")),k$2(Table,{of:"plain shares",label:"Shares",heads:["Answer",...joined.servers.map(({server})=>k$2(Text,null,server)),"together"]},names.map((name,place)=>k$2("tr",{key:name},k$2("th",{scope:"row"},k$2(Text,null,name.replaceAll("_"," "))),joined.servers.map(({server,outputs})=>k$2("td",{key:server,class:"figure"},k$2(Text,null,outputs[place]?.[1]??"–"))),k$2("td",{class:"figure"},name==="allow_pre"?joined.allow:name==="need_confirm"?joined.confirm:joined.patch===null?"–":joined.patch>>(name==="patch1"?1:0)&1)))))
}
var WORDS_MAX=1e3
var WORD=/[\p{L}\p{M}\p{N}_]+|\s+|[^]/gu
var COMPARED_MAX=4e6
var COMMON_MIN=.3
function markDiff(diff) {
const lines=readDiff$1(diff).map(({text,...line})=>({...line,pieces:[{text,isChanged:false}]}))
let compared=0
for (const [removed,added] of findPairs(lines)) {
const [before,after]=[textOf(removed),textOf(added)]
if (Math.max(before.length,after.length)>WORDS_MAX) continue
compared+=before.length*after.length
if (compared>COMPARED_MAX) break
const marked=compareWords(before,after)
if (marked.common<COMMON_MIN*Math.max(before.length,after.length)) continue;
[removed.pieces,added.pieces]=[marked.before,marked.after]
}
return lines
}
function compareWords(before,after) {
const [left,right]=[before.match(WORD)??[],after.match(WORD)??[]]
const width=right.length+1
const most=new Uint16Array((left.length+1)*width)
for (let one=left.length-1; one>=0; one--) {
const word=left[one]
for (let other=right.length-1; other>=0; other--) {
const here=one*width+other
most[here]=word===right[other]?most[here+width+1]+word.length:Math.max(most[here+width],most[here+1])
}
}
const pieces=[[],[]]
const add=(side,text,isChanged)=>{
const last=pieces[side].at(-1)
if (last?.isChanged===isChanged) last.text+=text
else pieces[side].push({text,isChanged})
}
for (let [one,other]=[0,0]; one<left.length||other<right.length;) {
const [word,next]=[left[one],right[other]]
const isSame=word===next
const isRemoved=!isSame&&word!==void 0&&(next===void 0||most[(one+1)*width+other]>=most[one*width+other+1])
if (isSame||isRemoved) add(0,left[one++],isRemoved)
if (!isRemoved) add(1,right[other++],!isSame)
}
return {before:pieces[0],after:pieces[1],common:most[0]}
}
function findPairs(lines) {
return splitRows(lines).filter(row=>row[0]!==row[1]&&row[0]!==null&&row[1]!==null)
}
function splitRows(lines) {
const rows=[]
for (let at=0; at<lines.length;) {
const removed=[]
const added=[]
while (lines[at]?.sort==="removed") removed.push(lines[at++])
while (lines[at]?.sort==="added") added.push(lines[at++])
for (let row=0; row<Math.max(removed.length,added.length); row++) rows.push([removed[row]??null,added[row]??null])
const other=lines[at]
if (!removed.length&&!added.length&&other!==void 0) {
rows.push([other,other])
at++
}
}
return rows
}
function headPath(header,known) {
const named=/^\+\+\+ (?:b\/)?(.+)/.exec(header)?.[1]??""
return known.find(path=>path.replace(/^\/+/,"")===named)??named
}
function textOf(line) {
return line.pieces.map(piece=>piece.text).join("")
}
var LINES_SHOWN=300
var DIFF_MAX=1e6
var form=y$1("unified")
function Counts({lines}) {
if (lines===null) return null
return k$2("span",{class:"counts figure"},k$2("span",{class:"added"},"+",lines[0])," ",k$2("span",{class:"removed"},"−",lines[1]))
}
function DiffView({diff,title="",paths=[]}) {
const [shown,setShown]=d$2(LINES_SHOWN)
const lines=w$2(()=>markDiff(cutText(diff,DIFF_MAX)),[diff])
const names=lines.filter(line=>line.sort==="file").map(line=>line.pieces[0]?.text??"")
const path=names.map(name=>headPath(name,paths)).find(name=>name&&name!=="/dev/null")
const isOfOne=names.filter(name=>name.startsWith("+++ ")).length<=1
const body=isOfOne?lines.filter(line=>line.sort!=="file"||!/^(?:--- |\+\+\+ )/.test(line.pieces[0]?.text??"")):lines
const isSplit=form.value==="split"
const rows=isSplit?splitRows(body):body
return k$2("figure",{class:`diff-box${isSplit?" split":""}`},k$2("figcaption",null,k$2("span",{class:"path"},k$2(Text,null,title||(isOfOne?path:plural(names.filter(name=>name.startsWith("+++ ")).length,"file"))||"change")),k$2(Counts,{lines:countChangedLines(diff)}),k$2("button",{type:"button",class:"small","aria-pressed":isSplit,onClick:()=>{
form.value=isSplit?"unified":"split"
}},"Side by side")),k$2("div",{class:"diff-scroll",tabIndex:0,role:"region","aria-label":`Change of ${visible(title||path||"a file")}`},k$2("table",{class:"diff"},k$2("tbody",null,isSplit?splitRows(body).slice(0,shown).map(([left,right],at)=>k$2(SplitLine,{key:at,left,right})):body.slice(0,shown).map((line,at)=>k$2(UnifiedLine,{key:at,line}))))),rows.length>shown?k$2("button",{type:"button",class:"small more",onClick:()=>setShown(shown+10*LINES_SHOWN)},"Show ",count(Math.min(rows.length-shown,10*LINES_SHOWN))," more lines"):null,diff.length>DIFF_MAX?k$2("p",{class:"beside"},"The change is longer than this page lays out. The exact bytes of the record have all of it."):null)
}
var SIGNS={added:"+",removed:"−",same:" ",place:"",file:""}
function Pieces({line}) {
const tag=line.sort==="added"?"ins":"del"
return k$2($,null,line.pieces.map((piece,at)=>{
const text=visible(piece.text)
if (!piece.isChanged) return text
return tag==="ins"?k$2("ins",{key:at},text):k$2("del",{key:at},text)
}))
}
function UnifiedLine({line}) {
if (line.sort==="place"||line.sort==="file") return k$2("tr",{class:line.sort},k$2("td",{colSpan:4},k$2(Pieces,{line})))
return k$2("tr",{class:line.sort},k$2("td",{class:"n"},line.old||""),k$2("td",{class:"n"},line.next||""),k$2("td",{class:"sign"},SIGNS[line.sort]),k$2("td",{class:"text"},k$2(Pieces,{line})))
}
function SplitLine({left,right}) {
if (left!==null&&(left.sort==="place"||left.sort==="file")) return k$2("tr",{class:left.sort},k$2("td",{colSpan:6},k$2(Pieces,{line:left})))
const half=(line,number)=>k$2($,null,k$2("td",{class:`n ${line?.sort??"none"}`},number||""),k$2("td",{class:`sign ${line?.sort??"none"}`},line===null?"":SIGNS[line.sort]),k$2("td",{class:`text ${line?.sort??"none"}`},line===null?"":k$2(Pieces,{line})))
return k$2("tr",null,half(left,left?.old??null),half(right,right?.next??null))
}
function onScale(value) {
if (!(value instanceof JsonNumber)) return null
const number=value.value
return Number.isFinite(number)?Math.min(1,Math.max(0,number)):null
}
function Score({value}) {
if (!(value instanceof JsonNumber)) return null
const number=value.value
const shown=value.isInteger||value.text.length<=5?value.text:number>0&&number<.001?"<0.001":number.toFixed(3)
return k$2("span",{class:"figure",title:value.text},shown)
}
function DecisionCard({decision,isLinked=true}) {
const state=refuses(decision)?"bad":decision.decision==="human_review"?"warn":"good"
const reasons=shownReasons(decision)
return k$2("div",{class:`decision is-${state}`},k$2("p",null,k$2("strong",null,k$2(Text,null,decisionLabel(decision.decision))),isObserved(decision)?k$2("span",{class:"warn"}," The gate only observed, and held nothing back."):null,decision.at?k$2("span",{class:"beside"}," · ",k$2(Time,null,decision.at)):null,isLinked&&decision.chain!==null&&decision.sequence!==null?k$2($,null," · ",k$2("a",{href:link("c",decision.chain,decision.sequence)},"its record")):null),reasons.length?k$2("ul",null,reasons.map((reason,place)=>k$2("li",{key:place},k$2(Text,null,reason)))):null,k$2("dl",{class:"facts"},decision.rules.length?k$2("div",null,k$2("dt",null,"Rules"),k$2("dd",null,decision.rules.map(rule=>k$2("code",{key:rule},k$2(Text,null,rule))))):null,decision.answer?k$2("div",null,k$2("dt",null,"Answer to the agent"),k$2("dd",null,k$2(Text,null,decision.answer))):null),decision.score instanceof JsonNumber?k$2(ScoreBar,{score:decision.score,interval:decision.interval,thresholds:decision.thresholds}):k$2("p",{class:"beside"},"No risk was computed: the rules alone decided."))
}
var WIDTH$2=320
function ScoreBar({score,interval,thresholds}) {
const [low,high]=Array.isArray(interval)?interval:[]
const pass=at(thresholds,"pass_below")
const skip=at(thresholds,"skip_above")
const toX=value=>(onScale(value)??0)*WIDTH$2
return k$2("div",{class:"score"},k$2("svg",{viewBox:`0 0 ${WIDTH$2} 28`,width:"100%",height:"28",preserveAspectRatio:"none","aria-hidden":"true"},k$2("rect",{class:"scale",x:"0",y:"12",width:WIDTH$2,height:"4"}),onScale(low)===null||onScale(high)===null?null:k$2("rect",{class:"interval",x:toX(low),y:"9",width:Math.max(2,toX(high)-toX(low)),height:"10"}),onScale(pass)===null?null:k$2("rect",{class:"threshold",x:toX(pass),y:"4",width:"2",height:"20"}),onScale(skip)===null?null:k$2("rect",{class:"threshold",x:toX(skip),y:"4",width:"2",height:"20"}),k$2("rect",{class:"value",x:toX(score)-2,y:"6",width:"4",height:"16"})),k$2("p",{class:"beside"},"Risk ",k$2(Score,{value:score}),low instanceof JsonNumber?k$2($,null,", interval ",k$2(Score,{value:low})," to ",k$2(Score,{value:high})):null,pass instanceof JsonNumber?k$2($,null,". It is low if the whole interval is at most ",k$2(Score,{value:pass})):null,skip instanceof JsonNumber?k$2($,null,", and denied if the whole is above ",k$2(Score,{value:skip})):null,pass instanceof JsonNumber?". The rules decide, and see this.":""))
}
var cases=y$1(null)
var areCasesCut=y$1(false)
var casesProblem=y$1("")
var now=y$1(new Date())
function stateOf(one) {
return one.state==="pending"&&now.value>new Date(one.expires)?"expired":one.state
}
var asked=0
function readCases() {
const mine=++asked
connection.ask({type:"approvals",keys:pinnedKeys(),now:new Date().toISOString().replace("Z","+00:00")}).then(found=>{
if (mine!==asked) return
cases.value=found.cases
areCasesCut.value=found.isCut
casesProblem.value=""
},error=>{
if (mine===asked) casesProblem.value=error.message
})
}
function watchApprovals() {
x(()=>{
contents.value,pins.value,news.value.approvals
if (contents.value===null) cases.value=null
else readCases()
})
x(()=>{
waiting.value=(cases.value??[]).filter(one=>stateOf(one)==="pending").length
})
setInterval(()=>{
if (waiting.value>0) now.value=new Date()
},1e3)
}
var CASE_WORDS={pending:"waits for an answer",approved:"approved, not used yet",denied:"denied",expired:"expired: denied",closed:"closed: denied",used:"approved and used"}
function timeLeft(expires) {
const seconds=Math.max(0,Math.floor((new Date(expires).getTime()-now.value.getTime())/1e3))
const [hours,minutes]=[Math.floor(seconds/3600),Math.floor(seconds%3600/60)]
return hours?`${hours} h ${String(minutes).padStart(2,"0")} min`:`${minutes} min ${String(seconds%60).padStart(2,"0")} s`
}
function CaseState({one}) {
const state=stateOf(one)
return k$2("span",{class:`word ${["denied","expired","closed"].includes(state)?"failure":state==="pending"?"":"good"}`},CASE_WORDS[state]??state)
}
var SUMMARY_START=/^asks for approval: /
function describeCase(one) {
let content=null
let summary=""
try {
const record=readJson(one.canonical)
content=at(record,"outcome","result")??null
summary=asText(at(record,"outcome","summary")??null).replace(SUMMARY_START,"")
} catch (error) {
if (!(error instanceof BadInput)) throw error
}
const action=asObject(at(content,"action"))
const isApart=action.size===1&&action.has("blob")
return {content,line:isApart||!action.size?summary||"a large action":actionLine(action)}
}
function CaseLine({one,isFirst}) {
return k$2("a",{class:"case-line",href:link("approvals",one.id),"data-row":true,tabIndex:isFirst?0:-1},k$2("code",null,k$2(Text,null,cutText(describeCase(one).line,160))),k$2(CaseState,{one}),k$2("span",{class:"beside"},stateOf(one)==="pending"?k$2($,null,timeLeft(one.expires)," left"):k$2(Time,null,one.opened)))
}
var ALGORITHMS=new Map([[-7,{alg:ES256,prefix:"3059301306072a8648ce3d020106082a8648ce3d030107034200"}],[-8,{alg:EDDSA,prefix:"302a300506032b6570032100"}]])
var TIMEOUT=12e4
function passkeyObstacle() {
if (location.protocol==="file:") return "A page from a file has no passkeys. Start aver serve, and open the link that it prints."
if (!window.isSecureContext||typeof PublicKeyCredential==="undefined") return "This browser offers no passkeys on this page."
if (/^[\d.]+$|:/.test(location.hostname)) return "Passkeys belong to a name, not to an address. Open the page as http://localhost."
return ""
}
async function createPasskey(identity,known=[]) {
const rpId=location.hostname
const created=await navigator.credentials.create({publicKey:{rp:{id:rpId,name:"Aver"},user:{id:crypto.getRandomValues(new Uint8Array(16)),name:identity,displayName:identity},challenge:crypto.getRandomValues(new Uint8Array(32)),pubKeyCredParams:[...ALGORITHMS.keys()].map(alg=>({type:"public-key",alg})),authenticatorSelection:{userVerification:"required",residentKey:"preferred"},excludeCredentials:known.filter(one=>one.rpId===rpId).map(describeCredential),attestation:"none",timeout:TIMEOUT}})
if (created===null) throw new BadInput("no passkey was made")
const response=created.response
const found=ALGORITHMS.get(response.getPublicKeyAlgorithm())
const encoded=toHex$1(new Uint8Array(response.getPublicKey()??new ArrayBuffer(0)))
if (found===void 0||!encoded.startsWith(found.prefix)) throw new BadInput("the passkey has an algorithm that Aver does not verify")
return new Passkey(new Map([["alg",found.alg],["public_key",encoded.slice(found.prefix.length)],["rp_id",rpId],["credential",encodeBase64url(new Uint8Array(created.rawId))]]),"the new key")
}
function describeCredential(passkey) {
return {type:"public-key",id:decodeBase64url(passkey.credential)}
}
async function signByPasskey(purpose,content,passkey) {
const given=await navigator.credentials.get({publicKey:{challenge:Uint8Array.from(sha256Bytes(statementBytes(purpose,content))),rpId:passkey.rpId,allowCredentials:[describeCredential(passkey)],userVerification:"required",timeout:TIMEOUT}})
if (given===null) throw new BadInput("the passkey did not sign")
const response=given.response
const signature=new Uint8Array(response.signature)
return {by:passkey.fingerprint,ed25519:"",ml_dsa_65:"",passkey:{authenticator_data:encodeBase64url(new Uint8Array(response.authenticatorData)),client_data:encodeBase64url(new Uint8Array(response.clientDataJSON)),signature:encodeBase64url(passkey.alg==="ES256"?normaliseEs256(signature):signature)}}
}
async function signEnrolment(identity,home,known=[]) {
const key=await createPasskey(identity,known)
const now=`${new Date().toISOString().slice(0,19)}+00:00`
const content=enrolmentContent({identity,key,custody:"passkey",endorsers:[]},home.ledger,home.tenant,now)
return {purpose:"enrolment",content,signatures:[await signByPasskey("enrolment",content,key)]}
}
async function endorseEnrolment(statement,endorser) {
const signature=await signByPasskey(statement.purpose,statement.content,endorser)
return {...statement,signatures:[...statement.signatures,signature]}
}
function enrolmentCode(statement) {
return encodeBase64url(encoder.encode(canonicalJson(statementFields$1(statement))))
}
function endorseCommand(statement,by="person:NAME") {
return `aver approvals endorse ${enrolmentCode(statement)} --by ${by}`
}
function enrolledFingerprint(statement) {
return statement.signatures[0]?.by??""
}
function readOpenRequest(canonical,ledger,tenant) {
const record=readJson(canonical)
const content=at(record,"outcome","result")
if (!isObject(record)||!isObject(content)) throw new BadInput("the record is not a request for approval")
const text=(value,name)=>{
if (typeof value!=="string") throw new BadInput(`the request has no ${name}`)
return value
}
const approvers=content.get("approvers")
const passkeys=new Map()
for (const [identity,approver] of isObject(approvers)?approvers:[]) if (isObject(approver)&&approver.get("custody")==="passkey") passkeys.set(identity,new Passkey(approver.get("passkey"),identity))
const version=content.get("statement")
return {ledger,tenant,id:text(record.get("id"),"id"),opened:text(readBlock(record)?.get("at"),"time"),expires:text(content.get("expires"),"end"),digest:text(content.get("digest"),"digest"),scope:typeof content.get("scope")==="string"?content.get("scope"):"",statement:isInteger(version)?version.value:1,content,passkeys}
}
async function signVote(request,word,identity,shown,choice={}) {
const passkey=request.passkeys.get(identity)
if (passkey===void 0) throw new BadInput(`${identity} has no passkey that may answer this request`)
if (request.statement!==3) throw new BadInput("this request is of an earlier version of Aver: answer it at a terminal")
const content=voteContent(request,word,identity,sha256Hex(shown),word==="approve"?choice:{})
return {purpose:"approval",content,signatures:[await signByPasskey("approval",content,passkey)]}
}
function voteBody(statement,shown,comment="") {
return canonicalJson(new Map([["statement",statementFields$1(statement)],["shown",shown],["comment",comment]]))
}
function enrolmentBody(statement) {
return canonicalJson(new Map([["statement",statementFields$1(statement)]]))
}
var LINE_WIDTH=300
var DEPTH_MAX=20
var HIDDEN=new RegExp(["\\p{C}","(?! )\\p{Z}","[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufeff\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]","[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\uffa0\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}]","(?<=\\p{M}{2})\\p{M}"].join("|"),"gu")
async function shownText(request,fetchBlob,given={}) {
const {content}=request
const action=await readPart(content.get("action"),fetchBlob)
const beside=await readPart(content.get("beside"),fetchBlob)
const diff=await readDiff(content.get("diff"),fetchBlob)
if (!isObject(action)) throw new BadInput("the request holds no action")
const {uses=1,scope=request.scope,comment=""}=given
const risk=at(content,"risk","score")
return [`request ${request.id}`,`  opened ${request.opened}, expires ${request.expires} (UTC)`,...renderLevels(content.get("levels")),`  risk ${risk instanceof JsonNumber?risk.text:"not estimated"}`,"why a person is asked",...texts(content.get("reasons")).flatMap(quote),...texts(content.get("rules")).flatMap(rule=>quote(`rule ${rule}`)),"the action",...[...action].flatMap(([name,value])=>renderField(name,value,0)),...isObject(beside)?["what its digest leaves out",...[...beside].flatMap(([name,value])=>name==="description"&&action.has(name)?[]:renderField(name,value,0))]:[],...diff===null?[]:["its diff",...quote(diff.replace(/\n$/,""))],...comment?["your reason",...quote(comment)]:[],"what an answer is good for",`  ledger ${request.ledger}, tenant ${request.tenant}`,`  request ${request.id}`,...quote(`scope: ${scope}`),`  ${uses===1?"once":`${uses} times`}, until ${request.expires} (UTC)`,`digest ${request.digest}`].map(line=>`${line.trimEnd()}\n`).join("")
}
async function fetchWhole(digest,fetchBlob) {
if (typeof digest!=="string") throw new BadInput("the request names a blob without its digest")
const bytes=await fetchBlob(digest)
if (sha256Hex(bytes)!==digest) throw new BadInput("a blob of the request has other bytes")
return decodeUtf8(bytes)
}
function isBlob(value) {
return isObject(value)&&value.size===1&&value.has("blob")
}
async function readPart(value,fetchBlob) {
return isBlob(value)?readJson(await fetchWhole(at(value,"blob","digest"),fetchBlob)):value
}
async function readDiff(value,fetchBlob) {
if (isBlob(value)) return fetchWhole(at(value,"blob","digest"),fetchBlob)
return typeof value==="string"?value:null
}
function texts(value) {
return Array.isArray(value)?value.map(item=>typeof item==="string"?item:plainJson(item)):[]
}
function renderLevels(levels) {
return (Array.isArray(levels)?levels:[]).map((level,index)=>{
const after=plainJson(at(level,"after")??null)
const since=after==="0"?"":`, after ${after} seconds`
return `  level ${index+1}${since}: ${plainJson(at(level,"quorum")??null)} of ${texts(at(level,"approvers")).join(", ")||"no enrolled person"}`
})
}
function renderField(name,value,depth) {
const before="  ".repeat(depth)+name
if (typeof value==="string") {
if (value.includes("\n")) return [...quote(`${before}:`),...value.split("\n").flatMap(line=>quote("  ".repeat(depth+1)+line))]
return quote(`${before}: ${needsQuotes(value)?JSON.stringify(value):value}`)
}
if (isObject(value)&&value.size&&depth<DEPTH_MAX) return [...quote(`${before}:`),...[...value].flatMap(([inner,item])=>renderField(inner,item,depth+1))]
if (Array.isArray(value)&&value.length&&depth<DEPTH_MAX) return value.flatMap((item,index)=>renderField(`${name}[${index}]`,item,depth))
return quote(`${before}: ${plainJson(value)}`)
}
function needsQuotes(text) {
if (text===""||text!==text.trim()) return true
try {
readJson(text)
return true
} catch {
return false
}
}
function quote(text) {
return text.split("\n").flatMap(line=>{
const characters=[...line.replace(HIDDEN,one=>`<U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4,"0")}>`)]
const parts=[`  | ${characters.slice(0,LINE_WIDTH).join("")}`]
for (let start=LINE_WIDTH; start<characters.length; start+=LINE_WIDTH) parts.push(`  : ${characters.slice(start,start+LINE_WIDTH).join("")}`)
return parts
})
}
var PERSON=/^person:[a-z0-9][a-z0-9._-]{0,63}$/
var fetchBlob=digest=>connection.ask({type:"blob",digest})
function explain(error) {
if (error instanceof ApiError) return `The ledger refused it: ${error.code?`${error.code}, `:""}${error.message}`
const {name,message}=error
return name==="NotAllowedError"?"The passkey did not sign: you cancelled it, or it took too long.":message
}
function home() {
return {ledger:contents.value?.ledger??"",tenant:contents.value?.tenant??""}
}
function openRequest(one) {
try {
const {ledger,tenant}=home()
const request=readOpenRequest(one.canonical,ledger,tenant)
return request.passkeys.size&&request.statement===3?request:null
} catch {
return null
}
}
function PasskeyAnswer({one}) {
const request=openRequest(one)
const people=[...request?.passkeys.keys()??[]]
const [person,setPerson]=d$2(people[0]??"")
const [comment,setComment]=d$2("")
const [words,setWords]=d$2("")
const [isBusy,setBusy]=d$2(false)
const shown=useAnswer(()=>request===null?Promise.resolve(""):shownText(request,fetchBlob,{comment}),[one.id,comment])
const isReadOnly=server.value?.about["read_only"]===true
if (request===null||server.value===null) return null
const obstacle=passkeyObstacle()||(isReadOnly?"This server only reads. Start aver serve without --read-only.":"")
const doubt=one.problem||!one.isSameAction?"This request does not hold: it is not answered here.":one.isSignerKnown?"":"Its record was signed by a key that you have not pinned: compare and pin it first."
const answer=async word=>{
setBusy(true)
setWords("")
try {
const text=shown.value??""
const body=voteBody(await signVote(request,word,person,text),text,comment)
await server.value?.api.ask(`approvals/${request.id}`,{method:"POST",body,headers:{"Content-Type":"application/json"}})
readCases()
} catch (error) {
setWords(explain(error))
}
setBusy(false)
}
return k$2($,null,k$2("h3",null,"Or with a passkey"),obstacle||doubt?k$2("p",{class:"beside"},obstacle||doubt):k$2($,null,k$2("p",null,"Read this text. You sign exactly it."),k$2("pre",{class:"shown",tabIndex:0},visible(shown.value??"…")),k$2("p",{class:"filters"},k$2("label",null,"You are ",k$2("select",{value:person,onChange:event=>setPerson(event.currentTarget.value)},people.map(name=>k$2("option",{key:name,value:name},visible(name))))),k$2("label",null,"Reason ",k$2("input",{type:"search",value:comment,maxLength:500,onInput:event=>setComment(event.currentTarget.value)}))),k$2("p",{class:"buttons"},k$2("button",{type:"button",disabled:isBusy||shown.state!=="done",onClick:()=>void answer("approve")},"Approve with a passkey"),k$2("button",{type:"button",disabled:isBusy||shown.state!=="done",onClick:()=>void answer("deny")},"Deny with a passkey"))),shown.state==="failed"?k$2(Problem,{words:shown.words}):null,words?k$2(Problem,{words}):null)
}
function PasskeyEnrolment() {
const [identity,setIdentity]=d$2("person:")
const [made,setMade]=d$2(null)
const [endorser,setEndorser]=d$2("")
const [done,setDone]=d$2("")
const [words,setWords]=d$2("")
const known=useAnswer(()=>server.value===null?Promise.resolve([]):connection.ask({type:"passkeys"}),[contents.value])
if (server.value===null) return null
const {api,about}=server.value
const endorsers=about["read_only"]===true?[]:(known.value??[]).filter(({fields})=>new Map(fields).get("rp_id")===location.hostname)
const obstacle=passkeyObstacle()
const endorse=async ()=>{
setWords("")
try {
const by=endorsers.find(one=>one.identity===endorser)??endorsers[0]
if (made===null||by===void 0) return
const statement=await endorseEnrolment(made,new Passkey(new Map(by.fields),by.identity))
await api.ask("approvers",{method:"POST",body:enrolmentBody(statement),headers:{"Content-Type":"application/json"}})
setMade(null)
setDone(`${identity} is on the list of approvers. A passkey endorsed it, so that its approvals count as escalated.`)
} catch (error) {
setWords(explain(error))
}
}
const enrol=async ()=>{
setWords("")
setDone("")
setMade(null)
try {
if (!PERSON.test(identity)) throw new Error("A person is named such as person:ada-phone: small letters, digits, dots and dashes.")
setMade(await signEnrolment(identity,home()))
} catch (error) {
setWords(explain(error))
}
}
return k$2("section",{class:"section"},k$2("h2",null,"Answer from here with a passkey"),k$2("p",null,"Your device makes a passkey and keeps it. An approver endorses it, at a terminal or here with a passkey; from then on it can answer new requests on this page. The first approver is enrolled at the terminal: ",k$2("code",null,"aver approvals enrol"),"."),obstacle?k$2("p",{class:"beside"},obstacle):k$2("form",{class:"filters",onSubmit:event=>{
event.preventDefault()
enrol()
}},k$2("label",null,"Person ",k$2("input",{type:"search",value:identity,onInput:event=>setIdentity(event.currentTarget.value),spellcheck:false})),k$2("button",{type:"submit"},"Make a passkey")),words?k$2(Problem,{words}):null,made===null?null:k$2("div",{role:"status"},k$2("p",null,"An approver runs this, and compares the fingerprint ",k$2("code",null,k$2(Text,null,enrolledFingerprint(made))),":"),k$2("p",null,k$2(Command,null,endorseCommand(made)))),made!==null&&endorsers.length?k$2("form",{class:"filters",onSubmit:event=>{
event.preventDefault()
endorse()
}},k$2("label",null,"Or a passkey endorses it: ",k$2("select",{value:endorser,onChange:event=>setEndorser(event.currentTarget.value)},endorsers.map(({identity:name})=>k$2("option",{key:name,value:name},visible(name))))),k$2("button",{type:"submit"},"Endorse with a passkey")):null,k$2("p",{class:"good",role:"status"},k$2(Text,null,done)))
}
var ID_SHOWN=8
async function readApart(value) {
const digest=isObject(value)&&value.size===1?at(value,"blob","digest"):void 0
if (typeof digest!=="string") return null
const bytes=await readBlob(digest)
if (bytes===null) throw new Error("A part of the request is kept beside its record, and is missing, damaged or too large. Do not answer it.")
return new TextDecoder().decode(bytes)
}
async function readParts(content) {
const [action,beside,diff]=await Promise.all(["action","beside","diff"].map(name=>readApart(at(content,name))))
const whole=(text,name)=>asObject(text?readJson(text):at(content,name))
const shown=at(content,"diff")
const bound=whole(action,"action")
const rest=[...whole(beside,"beside")].filter(([name])=>name!=="description"||!bound.has(name))
return {action:bound,beside:new Map(rest),diff:diff??(typeof shown==="string"?shown:"")}
}
function Levels({one}) {
return k$2(Table,{label:"Levels",heads:["Level","Who decides","How many","From"]},one.levels.map((level,index)=>k$2("tr",{key:index,class:index+1===one.floor?"current":""},k$2("td",null,index+1,index+1===one.floor&&stateOf(one)==="pending"?" (decides now)":""),k$2("td",null,level.approvers.map(name=>{
const key=one.approvers.find(approver=>approver.identity===name)
return k$2("p",{key:name,class:"tight"},k$2(Text,null,name)," ",key?k$2("span",{class:"beside"},k$2(Hex,null,key.fingerprint)," ",k$2(Text,null,key.custody)):null)
})),k$2("td",null,level.quorum," of ",level.approvers.length),k$2("td",null,level.after?`${level.after} s after it was opened`:"at once"))))
}
function Votes({one}) {
if (!one.votes.length) return k$2("p",{class:"soft"},"Nobody has answered.")
return k$2(Table,{label:"Answers"},one.votes.map(vote=>k$2("tr",{key:vote.place},k$2("td",null,k$2(Mark,{name:vote.problem?"failed":"verified"})," ",k$2(Text,null,vote.word)),k$2("td",null,k$2(Text,null,vote.approver||"the gate")),k$2("td",null,k$2(Time,null,vote.at)),k$2("td",null,vote.problem?k$2("strong",{class:"bad"},k$2(Text,null,vote.problem)):vote.approver?"the signature holds, by the key that the request names":""),k$2("td",null,k$2("a",{href:link("c",one.chain,`p${vote.place}`)},"record")))))
}
function Answers({one}) {
const [followed,setFollowed]=d$2("")
const state=stateOf(one)
A$1(()=>{
if (followed&&state!=="pending") spoken.value=`The request is ${CASE_WORDS[state]??state}`
},[state])
A$1(()=>{
if (state!=="pending"||!thing.value?.live||liveState.value.isLive) return void 0
const timer=setInterval(readCases,5e3)
return ()=>clearInterval(timer)
},[state,liveState.value.isLive])
if (state!=="pending") return null
const id=one.id.slice(0,ID_SHOWN)
return k$2("section",{class:"answers"},k$2("h2",null,"Answer it"),k$2("p",null,"Run one of these. It shows the whole request again and asks for your passphrase there. This page never asks for one, and takes no key: nobody could tell it from a forged page."),k$2("p",{onClick:()=>setFollowed("approve")},k$2(Command,null,`aver approvals approve ${id}`)),k$2("p",{onClick:()=>setFollowed("deny")},k$2(Command,null,`aver approvals deny ${id} --because "…"`)),k$2(PasskeyAnswer,{one}),thing.value?.live?k$2("p",{class:"beside",role:"status"},"This page follows the ledger, and shows the answer when it is there."):k$2("p",{class:"beside"},"This is a copy: an answer appears in the ledger, not here."))
}
function ExactAction({content}) {
const answer=useAnswer(()=>readParts(content),[content])
if (answer.state==="failed") return k$2(Problem,{words:answer.words,retry:answer.retry})
if (answer.value===null) return k$2(Loading,{rows:4,words:"Reading the action"})
const {action,beside,diff}=answer.value
const given=asObject(action.get("arguments"))
const command=commandLine(given)
const inner=[...given].filter(entry=>typeof entry[1]==="string"&&isDiff(entry[1]))
const fields=new Map([...action].filter(([name])=>name!=="arguments"&&name!=="v"))
const rest=new Map([...given].filter(([name,value])=>!inner.some(([shown])=>shown===name)&&!(command&&value===command)))
return k$2($,null,command?k$2("pre",{class:"command-line",tabIndex:0,role:"region","aria-label":"Command"},k$2(Text,null,command)):null,diff?k$2(DiffView,{diff}):null,inner.map(([name,text])=>k$2(DiffView,{key:name,diff:text})),rest.size?k$2(Value,{value:rest}):null,k$2(Value,{value:fields}),[...beside.values()].some(isTruthy)?k$2($,null,k$2("h3",null,"Beside it, and not covered by the digest"),k$2(Value,{value:beside})):null)
}
function Why({one,content}) {
const risk=at(content,"risk")
const score=at(risk,"score")
const interval=[at(risk,"low")??null,at(risk,"high")??null]
const reasons=asTexts(at(content,"reasons"))
return k$2("div",{class:"members"},k$2("dl",null,k$2("div",null,k$2("dt",null,"reasons"),k$2("dd",null,reasons.length?k$2("ul",{class:"plain-list"},reasons.map((reason,place)=>k$2("li",{key:place},k$2(Text,null,reason)))):k$2("span",{class:"soft"},"none"))),k$2("div",null,k$2("dt",null,"risk"),k$2("dd",null,score instanceof JsonNumber?k$2(ScoreBar,{score,interval,thresholds:null}):k$2("span",{class:"soft"},"no score"))),k$2("div",null,k$2("dt",null,"rules"),k$2("dd",null,asTexts(at(content,"rules")).map(rule=>k$2("code",{key:rule},k$2(Text,null,rule))))),k$2("div",null,k$2("dt",null,"digest of the action"),k$2("dd",null,k$2(Hex,{length:64},one.digest)," ",k$2(Copy,{text:one.digest,label:"copy"})," ",one.isSameAction?k$2("span",{class:"good"},"computed here: the same"):k$2("strong",{class:"bad"},"another action"))),k$2("div",null,k$2("dt",null,"opened"),k$2("dd",null,k$2(Time,null,one.opened))),k$2("div",null,k$2("dt",null,"expires"),k$2("dd",null,k$2(Time,null,one.expires))),k$2("div",null,k$2("dt",null,"request"),k$2("dd",null,k$2("code",null,k$2(Text,null,one.id))," ",k$2("a",{href:link("c",one.chain,`p${one.place}`)},"its record")))))
}
function Case({one}) {
const {content,line}=describeCase(one)
const state=stateOf(one)
return k$2("article",{class:"record case"},k$2("p",{class:"beside"},k$2("a",{href:link("approvals")},"All requests")),k$2("h1",null,k$2("code",null,k$2(Text,null,cutText(line,400)))),k$2("p",{class:"sentence"},k$2(CaseState,{one})," ",state==="pending"?k$2("strong",{class:"countdown"},timeLeft(one.expires)," left; then it is denied"):k$2(Text,null,one.reason)),one.problem?k$2(Problem,{words:`The record of this request does not hold: ${one.problem}. Do not answer it.`}):null,!one.isSameAction?k$2(Problem,{words:"The action or the diff in this request is not the one that its digest names. Do not answer it."}):null,!one.isSignerKnown&&!one.problem?k$2("div",{class:"finding warning"},k$2("p",null,"The record of this request was signed by a key that you have not pinned, so the signature was not checked. ",k$2("a",{href:link("keys")},"Keys"))):null,k$2("section",{class:"section"},k$2("h2",null,"The exact action"),k$2(ExactAction,{content})),k$2("section",{class:"section"},k$2("h2",null,"Why it is asked"),k$2(Why,{one,content})),k$2(Answers,{one}),k$2("section",{class:"section"},k$2("h2",null,"Who decides"),k$2(Levels,{one})),k$2("section",{class:"section"},k$2("h2",null,"What was answered"),k$2(Votes,{one})))
}
var LISTED$2=20
function Cases({all}) {
const box=T(null)
const [listed,setListed]=d$2(LISTED$2)
useRowKeys(box)
const open=all.filter(one=>stateOf(one)==="pending")
const done=all.filter(one=>stateOf(one)!=="pending")
return k$2("div",{ref:box},open.length?k$2("section",null,k$2("h2",null,plural(open.length,"request")," ",open.length===1?"waits":"wait"," for an answer"),k$2("div",{class:"cases"},open.map((one,at)=>k$2(CaseLine,{key:one.id,one,isFirst:at===0})))):k$2("p",{class:"strip"},"Nothing waits for you."),done.length?k$2("section",null,k$2("h2",null,"Answered"),k$2("div",{class:"cases"},done.slice(0,listed).map((one,at)=>k$2(CaseLine,{key:one.id,one,isFirst:!open.length&&at===0})))):null,done.length>listed?k$2("p",{class:"all"},k$2("button",{type:"button",onClick:()=>setListed(listed+100)},"Show ",Math.min(100,done.length-listed)," more")):null,k$2("p",{class:"beside all"},"The states are computed here from the records and their signatures. A request that nobody answers in time is denied."))
}
function ApprovalsView({parts:[id]}) {
const all=cases.value
if (id) {
const one=all?.find(found=>found.id===id)
if (one) return k$2(Case,{one})
if (all===null&&!casesProblem.value) return k$2(Loading,{rows:6,words:"Reading the request"})
const words=`There is no request ${id} here.${areCasesCut.value?` The page lists only the newest 500; run: aver approvals show ${id}`:""}`
return k$2(Problem,{words:casesProblem.value||words,retry:readCases})
}
return k$2($,null,k$2("h1",null,"Approvals"),casesProblem.value?k$2(Problem,{words:casesProblem.value,retry:readCases}):null,all===null&&!casesProblem.value?k$2(Loading,{rows:6,words:"Reading the requests"}):null,all!==null&&!all.length?k$2(Empty,{command:"aver approvals enrol person:NAME"},contents.value?.chains.some(chain=>chain.id.startsWith("approvals."))?"No request for an approval is in it.":"The gate has asked nobody yet."," It asks once a person is enrolled, and a rule or a risk wants an approval."):null,areCasesCut.value?k$2("p",{class:"strip"},"Only ",count(500)," requests are listed: the newest, and those that wait. All of them are in ",k$2("a",{href:link("chain",all?.[0]?.chain??"")},"their chain"),", record by record."):null,all?.length?k$2(Cases,{all}):null,k$2(PasskeyEnrolment,null))
}
var CHANGES=[["flip","Flip a character","one character of its text was changed","One bit of what happened is another."],["edit","Edit its summary","its summary was edited","The record tells another story."],["resign","Edit it, and give it the right hash","its summary was edited, and its hash computed anew","The hash fits again; the signature needs the key."],["forge","Edit it, and sign it with another key","its summary was edited, and it was signed by a key made just now","Hash and signature fit; nobody pinned that key."],["drop","Drop it","it was dropped","It never happened."],["double","Insert it twice","it was inserted twice","It happened twice."],["swap","Swap it with the next","it was swapped with the next record","It happened in another order."],["cut","Cut the chain here","the chain was cut before it","Nothing happened from here on."],["rollback","Roll everything back to here","every chain was taken back to the time before it, and the signed heads were left out","The whole copy is an older one, which fits in itself."]]
function CopyStrip() {
if (!changed.value) return null
return k$2("p",{class:"copy",role:"status"},k$2("strong",null,"copy")," You changed this copy: ",k$2(Text,null,changed.value),". The records themselves are untouched."," ",k$2("button",{type:"button",class:"small",onClick:()=>void undoChange()},"Back to the records"))
}
function TryToChange({chain,place,sequence,title="Try to change it"}) {
const [words,setWords]=d$2("")
const format=contents.value?.format
if (format!=="bundle"&&format!=="chain") return null
return k$2("section",{class:"section"},k$2("h2",null,title),k$2("p",null,"The page changes a copy in memory, verifies it, and shows where it breaks."),k$2("div",{class:"changes"},CHANGES.map(([change,label,did,hope])=>k$2("div",{key:change},k$2("button",{type:"button",onClick:()=>{
setWords("")
tryChange(chain,place,change,`record ${sequence} of ${chain}: ${did}`).catch(error=>setWords(error.message))
}},label),k$2("span",{class:"beside"},hope)))),words?k$2(Problem,{words}):null)
}
var GATE=["gate_decision","gate_score","policy_verdict"]
var RECEIPT=["receipt_hash","canonical_fields","parent_receipt_hash","parent_action_id"]
function ReceiptBand({detail}) {
const holds=detail.computedHash===detail.hash&&!detail.findings.length
const name=holds?"qualified":"failed"
return k$2("p",{class:`seal-band ${name}`,role:"status"},k$2(Mark,{name})," ",k$2("strong",null,name)," ",holds?"Its receipt is right. Nobody signed it: anyone can make such a line.":"This action does not hold by itself.")
}
function ActionSections({detail}) {
const fields=readJson(detail.canonical)
const pick=names=>new Map(names.map(name=>[name,fields.get(name)??null]))
const others=[...fields.keys()].filter(name=>![...GATE,...RECEIPT,"metadata"].includes(name))
return k$2($,null,k$2("section",{class:"section"},k$2("h2",null,"What was done"),k$2(Value,{value:pick(others)})),k$2("section",{class:"section"},k$2("h2",null,"What the gate said"),k$2(Value,{value:pick(GATE)}),k$2("p",{class:"beside"},"The line says so. The gate's own records are not in this file.")),k$2("section",{class:"section"},k$2("h2",null,"Metadata"),k$2(Value,{value:fields.get("metadata")??null}),k$2("p",{class:"beside"},"The receipt does not cover them.")))
}
function ReceiptSection({detail,before}) {
const isSame=detail.computedHash===detail.hash
return k$2("section",{class:"section seal",id:"section-seal"},k$2("h2",null,"Receipt"),k$2("div",{class:"members"},k$2("dl",null,k$2("div",null,k$2("dt",null,k$2(Mark,{name:isSame?"verified":"failed"})," SHA-256 of ",detail.receiptKeys," fields, computed here"),k$2("dd",null,k$2(Hex,{length:64},detail.computedHash||"another than the stored one"))),k$2("div",null,k$2("dt",null,"receipt, as stored"),k$2("dd",null,k$2(Hex,{length:64},detail.hash)," ",isSame?"the same":k$2("strong",null,"another"))),k$2("div",null,k$2("dt",null,"receipt of the action before"),k$2("dd",null,detail.previousHash?k$2($,null,k$2(Hex,{length:64},detail.previousHash)," ",before?k$2("a",{href:before,rel:"prev"},"the action before"):null):k$2("span",{class:"soft"},"none: this is the first"))),k$2("div",null,k$2("dt",null,"signature"),k$2("dd",{class:"soft"},"none")))),detail.findings.map((finding,index)=>k$2("p",{key:index,class:"beside"},k$2("strong",null,finding.code)," ",k$2(Text,null,finding.words))))
}
var SEARCHED_AT_ONCE=2e3
var SEARCHED_MAX=2e4
var FOUND_MAX=100
function relatedChains(chain,session) {
const all=contents.value?.chains??[]
const total=all.reduce((sum,one)=>sum+(one.length??0),0)
if (total<=SEARCHED_MAX) return {names:all.map(one=>one.id).filter(id=>id!=="meta"),isWhole:true,isQuick:total<=SEARCHED_AT_ONCE}
const names=[]
let sum=0
for (const one of [...all].sort((left,right)=>Number(right.id===chain)-Number(left.id===chain))) {
if (one.id!==chain&&!(session&&one.id.includes(session))&&!one.id.startsWith("approvals.")) continue
sum+=one.length??0
if (sum>SEARCHED_MAX&&names.length) break
names.push(one.id)
}
return {names,isWhole:false,isQuick:sum<=SEARCHED_AT_ONCE}
}
async function findRelated(chain,place,content,names,isWanted) {
const id=asText(content.get("id"))
const parent=asText(content.get("parent_id"))
const request=asText(at(content,"trigger","correlation_id"))
const refs=new Map(refsOf(content).map(([name,value])=>[value,name]))
const marks=[id,parent,request,...refs.keys()].filter(Boolean).map(text=>JSON.stringify(text))
const found=[]
for (const name of names) {
let index=-1
for await (const batch of readRecords(name)) {
for (const record of batch) {
index++
if (!(record instanceof Sealed)||name===chain&&index===place) continue
if (!marks.some(mark=>record.canonical.includes(mark))) continue
const relation=relate(record,{id,parent,request,refs})
if (relation===null) continue
found.push({...relation,chain:name,place:index})
if (found.length>=FOUND_MAX) return {found,isCut:true}
}
if (!isWanted()) throw new Left()
}
}
return {found,isCut:false}
}
function relate(record,wanted) {
const content=contentOf(record)
if (content===null) return null
const own=asText(content.get("id"))
const named=refsOf(content).find(([,value])=>value===wanted.id)
let relation=""
if (own&&own===wanted.parent) relation="caused this one"
else if (own&&wanted.refs.has(own)) relation=`its ${wanted.refs.get(own)?.replaceAll("_"," ")}`
else if (wanted.id&&content.get("parent_id")===wanted.id) relation="was caused by this one"
else if (named) relation=`names this one as its ${named[0].replaceAll("_"," ")}`
else if (wanted.request&&at(content,"trigger","correlation_id")===wanted.request) relation="of the same request"
if (!relation) return null
return {relation,kind:readKind(content),summary:cutText(asText(at(content,"outcome","summary")),240),at:asText(at(content,"trigger","timestamp"))||record.signed_at}
}
var TERMINAL_MAX=1e5
var PIECES_MAX=4e3
var ESCAPE=/\x1b(?:\[([0-9:;<=>?]{0,64})[ -/]{0,8}([@-~])|\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)|[ -Z\\^-~])|\r(?!\n)|\r(?=\n)/g
function hasEscapes(text) {
return text.includes("\x1B[")
}
function parseTerminal(text) {
const pieces=[]
let style={}
let from=0
const add=piece=>{
if (piece.text) pieces.push(piece)
}
for (const found of text.matchAll(ESCAPE)) {
if (pieces.length>=PIECES_MAX) break
add({text:text.slice(from,found.index),...visibleStyle(style)})
from=found.index+found[0].length
const isLineEnd=found[0]==="\r"
if (found[2]==="m"&&!/[<=>?]/.test(found[1]??"")) style=applySgr(style,found[1]??"")
else if (!isLineEnd||text[from]!=="\n") add({text:isLineEnd?"␍":`⟨ESC${found[0].slice(1,24)}⟩`,isMark:true})
}
add({text:text.slice(from),...visibleStyle(style)})
return pieces
}
function visibleStyle({isInverse,front,ground,...rest}) {
const [above,below]=isInverse?[ground??15,front??0]:[front,ground]
return {...rest,...above===void 0?{}:{front:above},...below===void 0||below===above?{}:{ground:below}}
}
function applySgr(before,parameters) {
const codes=parameters.split(/[;:]/).map(code=>Number(code||0))
let style={...before}
for (let at=0; at<codes.length; at++) {
const code=codes[at]
if (code===0) style={}
else if (code===1) style.isBold=true
else if (code===2) style.isFaint=true
else if (code===3) style.isItalic=true
else if (code===4) style.isUnderlined=true
else if (code===7) style.isInverse=true
else if (code===22) style=omit(style,"isBold","isFaint")
else if (code===23) style=omit(style,"isItalic")
else if (code===24) style=omit(style,"isUnderlined")
else if (code===27) style=omit(style,"isInverse")
else if (code===39) style=omit(style,"front")
else if (code===49) style=omit(style,"ground")
else if (code>=30&&code<=37) style.front=code-30
else if (code>=90&&code<=97) style.front=code-82
else if (code>=40&&code<=47) style.ground=code-40
else if (code>=100&&code<=107) style.ground=code-92
else if (code===38||code===48) {
const [colour,taken]=readColour(codes.slice(at+1))
if (colour!==null) style[code===38?"front":"ground"]=colour
at+=taken
}
}
return style
}
function omit(style,...names) {
const left={...style}
for (const name of names) delete left[name]
return left
}
function readColour(codes) {
const [form,one=0,two=0,three=0]=codes
if (form===2) return [nearest(one,two,three),4]
if (form!==5) return [null,0]
if (one<16) return [one,2]
if (one>=232) return [nearest(...grey(8+10*(one-232))),2]
const level=step=>step===0?0:55+40*step
const cube=one-16
return [nearest(level(Math.floor(cube/36)),level(Math.floor(cube/6)%6),level(cube%6)),2]
}
function grey(value) {
return [value,value,value]
}
function nearest(red,green,blue) {
const most=Math.max(red,green,blue)
if (most-Math.min(red,green,blue)<48) return most<64?0:most<144?8:most<220?7:15
const bits=[red,green,blue].map(part=>part>most*.6?1:0)
return bits[0]+2*bits[1]+4*bits[2]+(most>200?8:0)
}
function Terminal({text,label="Output"}) {
const shown=cutText(text,TERMINAL_MAX)
return k$2("div",{class:"terminal-box"},k$2("pre",{class:"terminal",tabIndex:0,role:"region","aria-label":label},hasEscapes(shown)?parseTerminal(shown).map((piece,at)=>k$2(Piece,{key:at,piece})):k$2(Linked,null,shown.replaceAll("\r\n","\n"))),text.length>1e5?k$2("p",{class:"beside"},count(text.length-TERMINAL_MAX)," more characters are not laid out. The exact bytes of the record have them."):null)
}
function Piece({piece}) {
const {text,front,ground,isBold,isFaint,isItalic,isUnderlined,isMark}=piece
const name=[front===void 0?"":`front-${front}`,ground===void 0?"":`ground-${ground}`,isBold?"bold":"",isFaint?"faint":"",isItalic?"italic":"",isUnderlined?"underlined":"",isMark?"escape":""].filter(Boolean).join(" ")
return name?k$2("span",{class:name},k$2(Linked,null,text)):k$2(Linked,null,text)
}
var UNNAMED_FILE="a file that the record does not name"
var EFFECT=/^(?:edited|wrote|added|deleted) (.+)$/s
var SUMMARY=/^[A-Za-z_]+: (.+?)(?: \(\+\d+\/-\d+\))?$/
function changedPaths(step) {
const named=step.sideEffects.flatMap(effect=>EFFECT.exec(effect)?.[1]??[])
if (named.length) return [...new Set(named)]
return [SUMMARY.exec(step.summary)?.[1]??UNNAMED_FILE]
}
function listFiles(entries) {
const files=new Map()
for (const entry of entries) {
const {step}=entry
if (step===null||!isEdit(step)) continue
const paths=changedPaths(step)
for (const path of paths) {
const file=files.get(path)??files.set(path,{path,edits:[],lines:[0,0]}).get(path)
file.edits.push(entry)
if (paths.length===1) file.lines=[file.lines[0]+(step.lines?.[0]??0),file.lines[1]+(step.lines?.[1]??0)]
}
}
return [...files.values()]
}
function diffOfFile(diff,path) {
const parts=diff.split(/^(?=--- )/m).filter(part=>part.startsWith("--- "))
if (parts.length<2) return diff
const isAbout=part=>part.split("\n",2).some(line=>/^(?:---|\+\+\+) /.test(line)&&(line.slice(4).replace(/^[ab]\//,"")===path.replace(/^\/+/,"")||line.slice(4).endsWith(path)))
const own=parts.filter(isAbout)
return own.length?own.join(""):diff
}
function Section({name,title,children}) {
return k$2("section",{class:"section",id:`section-${name}`},k$2("h2",null,title," ",k$2("span",{class:"soft"},name)),children)
}
function Rest({section,shown}) {
const rest=new Map([...section].filter(([name])=>!shown.includes(name)))
return rest.size?k$2(Value,{value:rest}):null
}
function Prose$1({text}) {
return k$2("div",{class:"prose"},k$2(Linked,null,text))
}
function Sections({record,content,isDenied}) {
const section=name=>asObject(content.get(name))
const paths=changedPaths(readStep(record))
return k$2($,null,k$2(Trigger,{section:section("trigger")}),k$2(Context,{section:section("context")}),k$2(Reasoning,{section:section("reasoning")}),k$2(Authority,{section:section("authority"),isDenied,isCall:!/^(approval|protocol)\./.test(readKind(content))}),k$2(Execution,{section:section("execution"),paths,isDenied}),k$2(Outcome,{section:section("outcome"),record,paths}))
}
function Trigger({section}) {
const request=asText(section.get("request"))
const time=asText(section.get("timestamp"))
return k$2(Section,{name:"trigger",title:"What started it"},request?k$2(Prose$1,{text:request}):null,time?k$2("p",{class:"beside"},k$2(Time,null,time)):null,k$2(Rest,{section,shown:["request","timestamp"]}))
}
function Context({section}) {
const environment=asObject(section.get("environment"))
const block=environment.get("aver")
return k$2(Section,{name:"context",title:"Where it happened"},k$2(Value,{value:new Map([...section].map(([name,value])=>[name,name==="environment"&&isObject(value)?new Map([...environment].filter(([key])=>key!=="aver")):value]))}),isObject(block)?k$2("details",null,k$2("summary",null,"Aver's block: ",k$2(Text,null,asText(block.get("kind")))),k$2(Value,{value:block})):null)
}
function Reasoning({section}) {
const [analysis,thinking]=[asText(section.get("analysis")),asText(section.get("reasoning"))]
const options=asList(section.get("options")).filter(isObject)
return k$2(Section,{name:"reasoning",title:"Why"},analysis?k$2(Prose$1,{text:analysis}):null,thinking?k$2("details",{class:"thinking",open:!analysis},k$2("summary",null,"What the model thought"),k$2(Prose$1,{text:thinking})):null,options.length?k$2(Options,{options,selected:section.get("selected_option")??null}):null,k$2(Rest,{section,shown:["analysis","reasoning",...options.length?["options","options_considered"]:[]]}))
}
function Options({options,selected}) {
const known=["id","description","pros","cons","estimated_impact","feasibility","risks","selected","rejection_reason"]
return k$2(Table,{of:"options",heads:["Option","Feasibility","Chosen","Why, or why not"]},options.map((option,place)=>{
const name=asText(option.get("description"))||asText(option.get("id"))||`option ${place}`
const isChosen=option.get("selected")===true||selected!==null&&(selected===option.get("id")||selected===option.get("description"))
const others=new Map([...option].filter(([key,value])=>!known.includes(key)||["pros","cons","risks"].includes(key)&&asList(value).length))
return k$2("tr",{key:place,class:isChosen?"chosen":""},k$2("th",{scope:"row"},k$2(Text,null,name)),k$2("td",{class:"figure"},option.get("feasibility") instanceof JsonNumber?option.get("feasibility").text:"–"),k$2("td",null,isChosen?k$2("strong",null,"✓ chosen"):"rejected"),k$2("td",null,k$2(Text,null,asText(option.get("rejection_reason"))||(isChosen?"":"it does not say why")),others.size?k$2(Value,{value:others}):null))
}))
}
function AuthorityWords({section}) {
const [approver,policy,reason]=["approver","policy_reference","escalation_reason"].map(name=>asText(section.get(name)))
switch (asText(section.get("type"))) {
case "autonomous":return k$2($,null,"The agent did it by itself: nobody was asked.")
case "policy":return policy?k$2($,null,"The record rests on this policy, and names no person: ",k$2(Text,null,policy)):k$2($,null,"The record rests on a policy that it does not name.")
case "human_approved":return approver==="client"?k$2($,null,"A person approved it, as the client reports."):k$2($,null,approver?k$2(Text,null,approver):"A person"," approved it.")
case "escalated":return k$2($,null,approver?k$2($,null,k$2(Text,null,approver)," was asked about it"):"It was passed on",reason?k$2($,null,": ",k$2(Text,null,reason)):".")
case "unknown":return k$2($,null,"Nobody is known to have decided about it.")
default:return null
}
}
function denier(section) {
const [type,approver,policy]=["type","approver","policy_reference"].map(name=>asText(section.get(name)))
if (approver) return approver==="client"?"a person, as the client reports":approver
if (type==="human_approved"||type==="escalated") return "a person, whom the record does not name"
return policy?`the policy ${policy}`:"somebody whom the record does not name"
}
function Authority({section,isDenied,isCall}) {
const type=asText(section.get("type"))
const chain=asList(section.get("chain"))
return k$2(Section,{name:"authority",title:"Who decided"},isDenied?k$2("p",null,k$2("strong",{class:"bad"},"Denied by ",k$2(Text,null,denier(section)),isCall?"; nothing ran":"",".")):type?k$2("p",null,k$2("strong",null,k$2(Text,null,type.replaceAll("_"," "))),". ",k$2(AuthorityWords,{section})):null,chain.length?k$2($,null,k$2("h3",null,"Signed statements"),k$2(Statements,{values:chain})):null,k$2(Rest,{section,shown:["type","chain",...isDenied?["approver","policy_reference"]:[]]}))
}
function Execution({section,paths,isDenied}) {
const calls=asList(section.get("tool_calls")).filter(isObject)
return k$2(Section,{name:"execution",title:isDenied?"What was asked for":"What was done"},calls.map((call,place)=>k$2(Call,{key:place,call,paths,isDenied})),k$2(Rest,{section,shown:["tool_calls"]}))
}
function Call({call,paths,isDenied}) {
const given=asObject(call.get("arguments"))
const command=commandLine(given)
return k$2("div",{class:"tool-call"},k$2("h3",null,k$2("code",null,k$2(Text,null,asText(call.get("tool"))||"tool"))," ",isDenied?k$2("span",{class:"bad"},"did not run"):call.get("success")===true?k$2("span",{class:"good"},"ended well"):call.get("success")===false?k$2("span",{class:"bad"},"did not end well"):null),command?k$2("pre",{class:"command-line",tabIndex:0},k$2(Text,null,command)):null,!command&&given.size?k$2(Value,{value:given}):null,command&&given.size>1?k$2(Value,{value:new Map([...given].filter(([name])=>name!=="command"&&name!=="cmd"))}):null,asText(call.get("error"))?k$2(Terminal,{text:asText(call.get("error")),label:"Error"}):null,k$2(Output,{value:call.get("result")??null,paths}),k$2(Rest,{section:call,shown:["tool","arguments","result","success","error"]}))
}
function Output({value,paths=[]}) {
if (typeof value==="string") return value?isDiff(value)?k$2(DiffView,{diff:value,paths}):k$2(Terminal,{text:value}):null
if (isObject(value)&&[...value.values()].some(item=>typeof item==="string"&&(item.includes("\n")||item.includes("\x1B[")))) return k$2($,null,labelledTexts(value).map((part,place)=>k$2("section",{key:place,class:"output"},part.name?k$2("h4",null,k$2(Text,null,part.name)):null,part.isAside?k$2("p",{class:"beside"},k$2(Linked,null,part.text)):isDiff(part.text)?k$2(DiffView,{diff:part.text,paths}):k$2(Terminal,{text:part.text}))))
return value===null?null:k$2(Value,{value})
}
var STATUSES={success:["good","It ended well."],failure:["bad","It failed."],blocked:["bad","It was denied."],pending:["warn","Its outcome is not known here."],partial:["warn","It ended in part."]}
function Outcome({section,record,paths}) {
const status=asText(section.get("status"))
const decision=readDecision(record)
const result=section.get("result")??null
const diff=isObject(result)&&typeof result.get("diff")==="string"?result.get("diff"):""
const [tone,words]=lookUp(STATUSES,status)??["",""]
return k$2(Section,{name:"outcome",title:"What came of it"},status?k$2("p",null,k$2("strong",{class:tone},k$2(Text,null,status)),". ",words):null,asText(section.get("summary"))?k$2(Prose$1,{text:asText(section.get("summary"))}):null,asText(section.get("error"))?k$2(Terminal,{text:asText(section.get("error")),label:"Error"}):null,decision===null?null:k$2(DecisionCard,{decision,isLinked:false}),diff?k$2(DiffView,{diff,paths}):null,diff?k$2(Rest,{section:new Map([...result].filter(([name])=>name!=="diff")),shown:[]}):decision===null?k$2(Output,{value:result,paths}):k$2("details",{class:"all-fields"},k$2("summary",null,"All that the decision rests on"),k$2(Output,{value:result})),k$2(Rest,{section,shown:["status","summary","error","result"]}))
}
var LAID_OUT_MAX=2e6
var EXACT_MAX=2e5
var LISTED$1=8
function readAddress(text) {
const found=/^(p?)(\d{1,19})$/.exec(text)
if (found===null) return null
return found[1]?{place:Number(found[2])}:{sequence:found[2]}
}
function CapsuleView({parts:[chain="",address="",fragment=""]}) {
const {value:detail,words,retry}=useAnswer(async ()=>{
const place=readAddress(address)
if (place===null) throw new Error(`${address} names no record: a number does, or p and a place`)
verifyChain(chain)
return connection.ask({type:"record",chain,at:place,keys:pinnedKeys()})
},[chain,address,contents.value,pins.value])
const place=detail?.row.place??0
const length=contents.value?.chains.find(one=>one.id===chain)?.length??null
const hasNext=length===null||place+1<length
const near=to=>link("c",chain,detail?.row.sequence===String(place)?to:`p${to}`)
useKeys({j:()=>{
if (detail&&hasNext) location.hash=near(place+1)
},k:()=>{
if (detail&&place>0) location.hash=near(place-1)
},Escape:()=>{
location.hash=wayBack(chain,detail?.row.sequence??"")
}})
if (words) return k$2($,null,k$2("p",null,k$2("a",{href:link("s",chain)},"Back to the chain")),k$2(Problem,{words,retry}))
if (detail===null) return k$2("div",{"aria-busy":"true"},k$2("h1",null,"Record"),k$2("p",{class:"beside",role:"status"},"Reading the record …"),k$2("div",{class:"band placeholder tall"}),k$2("div",{class:"band placeholder tall"}))
return k$2(Capsule,{key:detail.hash+place,chain,detail,hasNext,near,fragment})
}
function Capsule({chain,detail,hasNext,near,fragment}) {
const {row}=detail
const {place}=row
const number=row.sequence||String(place)
const record=w$2(()=>{
const {canonical,hash,signature,signaturePq,signedAt,signedBy}=detail
return toSealed(chain,{place,canonical,hash,signature,signaturePq,signedAt,signedBy,problem:""})
},[detail])
const isAction=detail.receiptKeys!==void 0
const isDenied=isDenial(row)
const content=w$2(()=>isAction||record.canonical.length>LAID_OUT_MAX?null:contentOf(record),[record])
const inChain=findingsOf(chain).filter(one=>String(one.place.sequence)===number&&one.code!=="UNKNOWN_SIGNER")
const uri=contents.value?.format==="capsules"?`capsule://sha3_${detail.hash}`:`capsule://${chain}/${number}`
return k$2("article",{class:"capsule record"},k$2("nav",{class:"beside neighbours","aria-label":"Neighbours"},k$2("a",{href:wayBack(chain,number)},"Back (Esc)"),k$2("a",{href:link(isAction?"chain":"s",chain,`at-${number}`)},isAction?"All actions":"Its session or chain"),place>0?k$2("a",{href:near(place-1),rel:"prev"},"Record before (k)"):k$2("span",null,"The first of its chain"),hasNext?k$2("a",{href:near(place+1),rel:"next"},"Record after (j)"):k$2("span",null,"The last of its chain")),k$2("h1",null,isDenied?k$2($,null,k$2("span",{class:"word failure"},"denied")," "):null,k$2(Text,null,row.summary||row.kind)),k$2("p",{class:"beside address"},isAction?null:k$2($,null,k$2("code",null,k$2(Text,null,uri))," ",k$2(Copy,{text:uri,label:"copy"}))," ",k$2(Copy,{text:location.href,label:"copy link"}),k$2("span",null,k$2(Text,null,`${row.kind} · ${row.type}`)," · ",k$2(Time,null,row.at))),isAction?k$2(ReceiptBand,{detail}):k$2(SealBand,{detail}),inChain.map((finding,index)=>k$2(FindingCard,{key:index,finding})),content!==null&&fragment?k$2(NamedPart,{content,fragment}):null,k$2("div",{class:"capsule-body"},k$2("div",null,isAction?k$2(ActionSections,{detail}):content===null?k$2("p",{class:"strip"},"The text of this record is no JSON object, or too large to lay out. Its exact bytes are below."):k$2(Sections,{record,content,isDenied})),k$2("aside",{"aria-label":"Seal and related records"},isAction?k$2(ReceiptSection,{detail,before:place>0?near(place-1):""}):k$2(SealSection,{detail}),content===null?null:k$2(Related,{chain,place,content}))),k$2(TryToChange,{chain,place,sequence:row.sequence}),k$2("section",{class:"section"},k$2("h2",null,"Exact bytes"),k$2("p",{class:"beside"},isAction?"The line as it is stored. ":"This text was hashed, as it is. ",detail.canonical.length>EXACT_MAX?`The first ${EXACT_MAX} of ${detail.canonical.length} characters are shown; the copy has all.`:""),k$2("p",null,k$2(Copy,{text:detail.canonical,label:isAction?"copy the line":"copy the text that was hashed"})),k$2("pre",{class:"exact",tabIndex:0},visible(cutText(detail.canonical,EXACT_MAX)))))
}
function NamedPart({content,fragment}) {
const value=resolveFragment(content,fragment)
return k$2("section",{class:"section",id:"section-named"},k$2("h2",null,"The part that the reference names ",k$2("span",{class:"soft"},k$2(Text,null,fragment))),value===void 0?k$2("p",null,"This record has nothing there."):k$2(Value,{value}))
}
function SealBand({detail}) {
const isSame=detail.computedHash===detail.hash&&detail.hash!==""
const failed=detail.findings.filter(one=>one.status==="failed")
const isKnown=!detail.findings.some(one=>one.code==="UNKNOWN_SIGNER")
const name=failed.length||!isSame?"failed":isKnown?"verified":"qualified"
const words=failed.length||!isSame?"This record does not hold by itself.":isKnown?"The record holds by itself: its hash is right, and a key that you pinned signed it.":"Its hash is right. Its signer is not pinned here, so the signature is not checked."
return k$2("p",{class:`seal-band ${name}`,role:"status"},k$2(Mark,{name})," ",k$2("strong",null,name)," ",words)
}
function SealSection({detail}) {
const isSame=detail.computedHash===detail.hash
return k$2("section",{class:"section seal",id:"section-seal"},k$2("h2",null,"Seal"),k$2("div",{class:"members"},k$2("dl",null,k$2("div",null,k$2("dt",null,k$2(Mark,{name:isSame?"verified":"failed"})," SHA3-256, computed here"),k$2("dd",null,k$2(Hex,{length:64},detail.computedHash||"none: the text has no bytes"))),k$2("div",null,k$2("dt",null,"hash, as stored"),k$2("dd",null,k$2(Hex,{length:64},detail.hash)," ",isSame?"the same":k$2("strong",null,"another"))),k$2("div",null,k$2("dt",null,"hash of the record before"),k$2("dd",null,detail.previousHash?k$2(Hex,{length:64},detail.previousHash):k$2("span",{class:"soft"},"none: this is the first"))),k$2("div",null,k$2("dt",null,"signed by"),k$2("dd",null,k$2(Hex,null,detail.signedBy)," at ",k$2(Time,null,detail.signedAt))),k$2("div",null,k$2("dt",null,"signature"),k$2("dd",null,k$2(Hex,{length:32},detail.signature)," ",k$2(SignatureWords,{detail}))),k$2("div",null,k$2("dt",null,"post-quantum signature"),k$2("dd",null,detail.signaturePq?k$2(Hex,{length:32},detail.signaturePq):k$2("span",{class:"soft"},"none"))))),detail.findings.map((finding,index)=>k$2("p",{key:index,class:"beside"},k$2("strong",null,finding.code)," ",k$2(Text,null,finding.words))))
}
function SignatureWords({detail}) {
const failed=detail.findings.find(one=>one.code==="SIG_INVALID"||one.code==="SIG_MISSING")
if (failed) return k$2("strong",null,failed.code)
const isUnknown=detail.findings.some(one=>one.code==="UNKNOWN_SIGNER")
if (detail.computedHash!==detail.hash) return k$2("strong",{class:"bad"},"signs the stored hash, which this text does not have")
if (!isUnknown) return k$2("span",{class:"good"},"valid, by a key that you pinned")
if (detail.matchesOwnKey===true) return k$2("span",{class:"warn"},"matches the key in the bundle, which you have not pinned: not checked. ",k$2("a",{href:link("keys")},"Keys"))
if (detail.matchesOwnKey===false) return k$2("strong",null,"does not match the key in the bundle")
return k$2("span",{class:"warn"},"not checked: its key is not known here. ",k$2("a",{href:link("keys")},"Keys"))
}
function Related({chain,place,content}) {
const {names,isWhole,isQuick}=w$2(()=>relatedChains(chain,asText(at(content,"context","session_id"))),[chain,content,contents.value])
const [isAsked,setAsked]=d$2(false)
const [isWholeList,setWholeList]=d$2(false)
const isSearched=isQuick||isAsked
const {value:found,words,retry}=useAnswer(async isCurrent=>isSearched?findRelated(chain,place,content,names,isCurrent):null,[chain,place,content,names,isSearched])
return k$2("section",{class:"section",id:"section-related"},k$2("h2",null,"Records that belong to it"),words?k$2(Problem,{words,retry}):null,isSearched?null:k$2("p",null,k$2("button",{type:"button",onClick:()=>setAsked(true)},"Look through ",plural(names.length,"chain"))),isSearched&&found===null&&!words?k$2("p",{class:"beside",role:"status"},"Looking through ",plural(names.length,"chain")," …"):null,found!==null&&!found.found.length?k$2("p",{class:"beside"},"No other record ",isWhole?"here":"of its chain and session"," belongs to the same request, caused it, or was caused by it."):null,found?.found.length?k$2("ul",{class:"related"},found.found.slice(0,isWholeList?void 0:LISTED$1).map(one=>k$2("li",{key:`${one.chain} ${one.place}`},k$2("span",{class:"soft"},k$2(Text,null,one.relation),":")," ",k$2("a",{href:link("c",one.chain,`p${one.place}`)},k$2(Text,null,one.summary||one.kind))," ",k$2("span",{class:"beside"},k$2(Text,null,one.kind)," · ",k$2(Time,null,one.at))))):null,found!==null&&found.found.length>LISTED$1&&!isWholeList?k$2("p",null,k$2("button",{type:"button",class:"small",onClick:()=>setWholeList(true)},"Show all ",found.found.length)):null,found?.isCut?k$2("p",{class:"beside"},"There are more. This list is cut."):null,found!==null&&!isWhole?k$2("p",{class:"beside"},"Only ",plural(names.length,"chain")," of its session and its approvals were searched, because there are too many records."):null)
}
var HASHED=["HASH_MISMATCH","CHAIN_BREAK","SEQUENCE_GAP","GENESIS_INVALID"]
async function readExpected(chain,place,code) {
const ask=at=>connection.ask({type:"record",chain,at:{place:at},keys:pinnedKeys()})
if (code==="HASH_MISMATCH") {
const {hash,computedHash}=await ask(place)
return [hash,computedHash]
}
if (!HASHED.includes(code)||place===0) return null
const [previous,here]=[await ask(place-1),await ask(place)]
return [previous.hash,here.previousHash]
}
function Expected({chain,place,code}) {
const answer=useAnswer(()=>readExpected(chain,place,code).catch(()=>null),[chain,place,code])
if (!answer.value) return null
const [expected,found]=answer.value
const what=code==="HASH_MISMATCH"?["stored hash","computed here"]:["hash of the record before","this record links to"]
return k$2("p",{class:"beside tight"},what[0],": ",k$2(WholeHex,null,expected)," ",what[1],": ",found?k$2(WholeHex,null,found):"nothing")
}
function Proof({proof}) {
if (proof===void 0||proof===null||typeof proof!=="object") return null
const heads=Object.entries(proof).filter(([,head])=>head!==null&&typeof head==="object"&&"hash" in head)
if (!heads.length) return null
return k$2("p",{class:"beside tight"},heads.map(([name,head])=>k$2("span",{key:name},name,": ",plural(head.count??0,"record"),", ",head.hash?k$2(WholeHex,null,head.hash):"no head"," ")))
}
var WORDS={character:8.4,line:22}
var SMALL={character:7.2,line:18}
var PADDING=24
function breakHeight(finding,width) {
const lines=(length,character)=>Math.ceil(length/Math.max(16,Math.floor(.9*width/character)))
const said=`${finding.code} at ${describePlace(finding.place)}: ${finding.words}`
const explained=adviceOn(finding.code)
const small=lines(`${explained?.meaning??""} ${explained?.advice??""}`.length,SMALL.character)
const below=finding.proof||HASHED.includes(finding.code)?lines(100,SMALL.character):0
return PADDING+WORDS.line*lines(said.length,WORDS.character)+SMALL.line*(small+below)
}
function BreakCard({chain,finding,place}) {
return k$2($,null,k$2("span",{class:"jag","aria-hidden":"true"}),k$2("div",{class:"break-words"},k$2(FindingCard,{finding}),place===null?null:k$2(Expected,{chain,place,code:finding.code}),k$2(Proof,{proof:finding.proof})))
}
var OVERSCAN=12
var BESIDE_MAX=56
function useVirtualRows(heights,box) {
const tops=w$2(()=>sumUp(heights),[heights])
const known=T(tops)
known.current=tops
const [{top,height},setWindow]=d$2({top:0,height:800})
F$1(()=>{
const element=box()
if (element===null) return
const update=()=>{
const next={top:element.scrollTop,height:element.clientHeight}
setWindow(before=>isSameRange(visibleRange(known.current,before.top,before.height),visibleRange(known.current,next.top,next.height))?before:next)
}
const observer=new ResizeObserver(update)
observer.observe(element)
element.addEventListener("scroll",update,{passive:true})
update()
return ()=>{
observer.disconnect()
element.removeEventListener("scroll",update)
}
},[])
const [from,to]=visibleRange(tops,top,height)
const rows=Array.from({length:to-from},(_,at)=>({index:from+at,start:tops[from+at],size:heights[from+at]}))
const reveal=index=>{
const element=box()
const [start,size]=[tops[index]??0,heights[index]??0]
if (element===null) return
const room=Math.min(size,BESIDE_MAX)
const end=start+size+room-element.clientHeight
if (start<element.scrollTop+room) element.scrollTop=start-room
else if (end>element.scrollTop) element.scrollTop=Math.min(end,start-room)
}
return {rows,total:tops[heights.length]??0,reveal}
}
function isSameRange(one,other) {
return one[0]===other[0]&&one[1]===other[1]
}
function sumUp(heights) {
const tops=new Float64Array(heights.length+1)
heights.forEach((height,at)=>{
tops[at+1]=tops[at]+height
})
return tops
}
function visibleRange(tops,top,height) {
const count=tops.length-1
let [low,high]=[0,count]
while (low<high) {
const middle=low+high>>1
if (tops[middle+1]<=top) low=middle+1
else high=middle
}
let end=low
while (end<count&&tops[end]<top+height) end++
const from=Math.max(0,low-OVERSCAN)
return [from,Math.min(count,end+OVERSCAN,from+120)]
}
function VirtualRows({heights,row,label,handle,onRange,isBusy=false,selected}) {
const box=T(null)
const {rows,total,reveal}=useVirtualRows(heights,()=>box.current)
const drawn=T({row,heights,entries:new Map()})
const before=drawn.current.row===row&&drawn.current.heights===heights?drawn.current.entries:new Map()
const entries=new Map(rows.map(one=>[one.index,before.get(one.index)??k$2("div",{key:one.index,id:`row-${one.index}`,class:"entry",role:"row","aria-rowindex":one.index+1,"aria-selected":selected===void 0?void 0:one.index===selected,style:{top:`${one.start}px`,height:`${one.size}px`}},k$2("div",{role:"gridcell"},row(one.index)))]))
drawn.current={row,heights,entries}
const [start,stop]=[rows[0]?.index??0,(rows.at(-1)?.index??-1)+1]
F$1(()=>onRange?.(start,stop),[start,stop,heights])
F$1(()=>handle?.({scrollTo:reveal}))
return k$2("div",{ref:box,class:"virtual",role:"grid","aria-label":label,"aria-rowcount":heights.length,"aria-busy":isBusy,"aria-activedescendant":(selected??-1)<0?void 0:`row-${selected}`,tabIndex:0},k$2("div",{class:"space",role:"rowgroup",style:{height:`${total}px`}},[...entries.values()]))
}
function isPhone() {
return matchMedia("(max-width: 719px)").matches
}
var FINDINGS_KEPT=100
function SessionMark({chains}) {
const failed=chains.find(chain=>findingsOf(chain).some(one=>one.status==="failed"))
const open=chains.find(chain=>judgementOf(chain).state!=="done")
return k$2(ChainMark,{chain:failed??open??chains[0]??""})
}
function ChainMark({chain,isCounted=false}) {
const now=judgementOf(chain)
if (now.state==="working") return k$2($,null,k$2(Mark,{name:"working"})," ",k$2("span",null,"verifying"))
if (now.state!=="done") return k$2($,null,k$2(Mark,{name:"not judged"})," ",k$2("span",null,"not judged"))
if (now.verdict.status==="verified") return k$2($,null,k$2(Mark,{name:"verified"})," ",k$2("span",null,"verified"))
const failed=findingsOf(chain).filter(one=>one.status==="failed").length
if (failed) return k$2($,null,k$2(Mark,{name:"failed"})," ",k$2("span",null,isCounted?plural(failed,"finding"):"failed"))
return now.verdict.findings.filter(one=>one.status==="failed").length>=FINDINGS_KEPT?k$2($,null,k$2(Mark,{name:"not judged"})," ",k$2("span",{title:"The verdict lists a hundred findings of a kind, and counts the others: one may be of this chain"},"not told apart")):k$2($,null,k$2(Mark,{name:"qualified"})," ",k$2("span",null,"no failure"))
}
function arrange(rows,total,findings,isLive) {
const byPlace=new Map()
for (const finding of findings) {
if (finding.place.sequence===null) continue
const key=String(finding.place.sequence)
byPlace.set(key,[...byPlace.get(key)??[],finding])
}
const bare=isLive?arrangeFindings(byPlace,total):arrangeRows(rows,total,byPlace)
const rest=[...byPlace.values()].flat().filter(finding=>finding.status==="failed")
for (const code of new Set(rest.map(finding=>finding.code))) {
const same=rest.filter(finding=>finding.code===code)
const first=same[0]
const words=same.length>1?`${first.words} (${same.length} places say so)`:first.words
bare.push({sort:"break",before:total,isAtRow:false,finding:{...first,words}})
}
const cut=rest.find(finding=>finding.code==="TRUNCATED")
if (cut!==void 0) bare.push({sort:"end",before:total,words:`The end was cut: ${cut.words}`})
return bare.map((extra,at)=>({...extra,index:extra.before+at}))
}
function arrangeFindings(byPlace,total) {
const bare=[]
let gap=-1
for (const [key,found] of [...byPlace].sort(([one],[other])=>Number(one)-Number(other))) {
const failed=found.find(one=>one.status==="failed")
if (Number(key)>=total) continue
byPlace.delete(key)
const isOfGap=failed?.code==="SEQUENCE_GAP"&&gap===Number(key)-1
if (failed?.code==="SEQUENCE_GAP") gap=Number(key)
if (failed!==void 0&&!isOfGap) bare.push({sort:"break",before:Number(key),isAtRow:true,finding:failed})
}
return bare
}
function arrangeRows(rows,total,byPlace) {
const bare=[]
let should=null
let said=null
for (let at=0; at<total; at++) {
const row=rows.get(at)
if (row===void 0) continue
const place=should??BigInt(row.sequence||at)
const says=row.sequence===""?place:BigInt(row.sequence)
const isNext=said!==null&&says===said+1n
const first=(said??place-1n)+1n
if (!isNext&&says>first) {
const words=says-1n===first?`record ${first} is missing`:`records ${first} to ${says-1n} are missing`
bare.push({sort:"missing",before:at,words})
}
const failed=byPlace.get(String(place))?.find(one=>one.status==="failed"&&!(one.code==="SEQUENCE_GAP"&&isNext))
if (failed!==void 0) bare.push({sort:"break",before:at,isAtRow:true,finding:failed})
byPlace.delete(String(place))
should=place+1n
said=says
}
return bare
}
function rowCount(total,extras) {
return total+extras.length
}
function extrasBefore(index,extras) {
let low=0
for (let high=extras.length; low<high;) {
const middle=low+high>>1
if (extras[middle].index<index) low=middle+1
else high=middle
}
return low
}
function entryAt(index,extras) {
const before=extrasBefore(index,extras)
const extra=extras[before]
return extra?.index===index?extra:{sort:"row",place:index-before}
}
function indexOfPlace(place,extras) {
return place+extras.filter(extra=>extra.before<=place).length
}
function findExtra(extras,sequence) {
return extras.find(extra=>extra.sort==="break"&&Number(extra.finding.place.sequence)===sequence)
}
var ROW_HEIGHT$3=36
var PHONE_ROW_HEIGHT$3=56
var CARD_HEIGHT=124
var BESIDE=420
var PHONE_BESIDE=90
var PLACEHOLDERS=12
var PAGE$1=100
var FILE_PAGE=2e3
var SORTS={tool:"◆",chat:"❝",agent:"▲",system:"●",workflow:"▶",auth:"✓",vault:"▣",kill:"■"}
var AUTHORITIES={human_approved:"a person",policy:"a rule",autonomous:"the agent",escalated:"escalated",unknown:""}
var lastSelected=new Map()
function Row({row,chain,isAfterBreak,isBroken,isSelected,place}) {
const classes=`row${isAfterBreak?" after":""}${isBroken?" broken":""}${isSelected?" selected":""}`
if (row===void 0) return k$2("div",{class:`${classes} loading`},k$2("span",{class:"time"}),k$2("span",{class:"node"}),k$2("span",{class:"sequence figure"},place))
const word=row.problem?"cannot be read":row.status&&row.status!=="success"?row.status==="blocked"?"denied":row.status:""
return k$2("a",{class:classes,href:recordLink(chain,row),tabIndex:-1},k$2("span",{class:"time"},k$2(Time,{short:true},row.at)),k$2("span",{class:"node","aria-hidden":"true"}),k$2("span",{class:"sequence figure"},row.sequence||row.place),k$2("span",{class:"sort",title:visible(row.type),"aria-hidden":"true"},lookUp(SORTS,row.type)??"○"),k$2("bdi",{class:"kind"},visible(row.kind)),k$2("span",{class:"summary"},row.tool&&!row.summary.startsWith(row.tool)?k$2("strong",null,k$2(Text,null,row.tool)):null," ",k$2(Text,null,row.problem||row.summary)),k$2("bdi",{class:word?`word ${row.status}`:""},visible(word)),k$2("bdi",{class:"authority"},lookUp(AUTHORITIES,row.authority)??visible(row.authority)),k$2("bdi",{class:"tokens figure"},visible(row.tokens)))
}
function WholeFindings({findings}) {
if (!findings.length) return null
return k$2("div",{class:"of-whole",tabIndex:0,role:"region","aria-label":`${plural(findings.length,"finding")} about the chain as a whole`},findings.map((finding,at)=>k$2(FindingCard,{key:at,finding})))
}
function ChainView({parts}) {
const [chain=""]=parts
if (contents.value?.chains.some(one=>one.id===chain)) return k$2(ListedChain,{parts})
return k$2($,null,k$2("h1",null,"Chain"),k$2(NotHere,{what:"chain",name:chain}),k$2("p",null,k$2("a",{href:link("chains")},"All chains")))
}
function ListedChain({parts:[chain="",wanted=""]}) {
const listed=contents.value?.chains.find(one=>one.id===chain)
const isLive=contents.value?.format==="ledger"
const [rows,setRows]=d$2(new Map())
const [total,setTotal]=d$2(isLive?listed?.length??0:null)
const [isCut,setCut]=d$2(false)
const [words,setWords]=d$2("")
const [selected,setSelected]=d$2(wanted?-1:lastSelected.get(chain)??-1)
const list=T(null)
const asked=T(new Set())
const [hasTallRows]=d$2(isPhone)
const [isReading,setReading]=d$2(!isLive)
const fetchRows=async (start,stop)=>{
try {
const found=await connection.ask({type:"rows",chain,start,stop})
setRows(before=>{
const next=new Map(before)
for (const row of found.rows) next.set(row.place,row)
return next
})
setTotal(found.total)
setCut(found.isCut)
setWords("")
return found.isMore
} catch (error) {
setWords(error.message)
return false
}
}
const readFile=async isCurrent=>{
setReading(true)
for (let start=0; isCurrent()&&await fetchRows(start,start+FILE_PAGE);) start+=FILE_PAGE
if (isCurrent()) setReading(false)
}
const fetchPages=(start,stop)=>{
if (!isLive) return
for (let page=Math.floor(start/PAGE$1); page*PAGE$1<stop; page++) {
if (asked.current.has(page)) continue
asked.current.add(page)
fetchRows(page*PAGE$1,(page+1)*PAGE$1)
}
}
const listedBefore=T(contents.value)
A$1(()=>{
let isCurrent=true
if (!isLive) readFile(()=>isCurrent)
else if (contents.value!==listedBefore.current) {
listedBefore.current=contents.value
asked.current.clear()
setTotal(listed?.length??0)
fetchPages(Math.max(0,(listed?.length??1)-1),listed?.length??1)
}
return ()=>{
isCurrent=false
}
},[chain,contents.value])
const now=judgementOf(chain)
const isUnjudged=unjudgedOf([chain]).length>0
const hasAnswer=rows.size>0||words!==""||total===0
A$1(()=>{
if (isUnjudged&&hasAnswer) verifyChain(chain)
},[chain,judgement.value.state,isUnjudged,hasAnswer])
const findings=findingsOf(chain)
const judged=now.state==="done"?now.verdict:null
const extras=w$2(()=>total===null?[]:arrange(rows,total,findings,isLive||isReading),[isLive||isReading?null:rows,total,judged,isReading])
const length=rowCount(total??0,extras)
const entry=index=>entryAt(index,extras)
const heights=w$2(()=>{
const all=Array(total===null?PLACEHOLDERS:length).fill(hasTallRows?PHONE_ROW_HEIGHT$3:ROW_HEIGHT$3)
for (const extra of extras) all[extra.index]=extra.sort==="break"?Math.max(CARD_HEIGHT,breakHeight(extra.finding,innerWidth-(hasTallRows?PHONE_BESIDE:BESIDE))):ROW_HEIGHT$3
return all
},[extras,length,total===null])
const select=index=>{
setSelected(index)
lastSelected.set(chain,index)
list.current?.scrollTo(index)
}
A$1(()=>{
if (!wanted&&selected>=0&&length) list.current?.scrollTo(selected)
},[total===null])
A$1(()=>{
if (!wanted.startsWith("at-")||!length) return
const place=Number(wanted.slice(3))
const found=findExtra(extras,place)??[...rows.values()].find(row=>row.sequence===wanted.slice(3))?.place??place
const index=typeof found==="number"?indexOfPlace(Math.min(found,(total??1)-1),extras):found.index
select(index)
},[wanted,extras.length,total])
const move=step=>{
let index=selected
do
index+=step
while (index>=0&&index<length&&entry(index).sort!=="row")
if (index>=0&&index<length) select(index)
}
const goToBreak=()=>{
const breaks=extras.filter(extra=>extra.sort!=="end")
const next=breaks.find(extra=>extra.index>selected)??breaks[0]
if (next) select(next.index)
}
useGridKeys({j:()=>move(1),ArrowDown:()=>move(1),k:()=>move(-1),ArrowUp:()=>move(-1),b:goToBreak})
useKeys({Enter:()=>{
const found=selected>=0?entry(selected):null
const row=found?.sort==="row"?rows.get(found.place):void 0
if (row) location.hash=recordLink(chain,row)
},Escape:()=>{
location.hash=wayUp()
}})
const broken=w$2(()=>new Set(extras.flatMap(extra=>extra.sort==="break"&&extra.isAtRow?[extra.before]:[])),[extras])
const firstBreak=extras.find(extra=>extra.sort!=="end")?.before??Infinity
const drawRow=b$2(index=>{
if (total===null) return k$2("div",{class:"row loading"})
const found=entryAt(index,extras)
if (found.sort==="row") return k$2(Row,{row:rows.get(found.place),place:found.place,chain,isAfterBreak:found.place>=firstBreak,isBroken:broken.has(found.place),isSelected:index===selected})
if (found.sort==="missing") return k$2("div",{class:`missing${index===selected?" selected":""}`},found.words)
if (found.sort==="end") return k$2("div",{class:"cap"},found.words)
return k$2("div",{class:`break break-entry${index===selected?" selected":""}`},k$2(BreakCard,{chain,finding:found.finding,place:found.isAtRow?found.before:null}))
},[rows,extras,total===null,selected,chain])
return k$2("section",{class:"chain-view"},k$2("header",null,k$2("h1",null,k$2(Text,null,listed?.title??chain)),k$2("p",{class:"beside"},listed&&listed.title!==chain?k$2($,null,k$2("code",null,k$2(Text,null,chain))," "):null,total===null?"":plural(total,"record"),isCut?" listed; the chain is longer, and was verified whole":""," ",now.state==="done"&&listed?k$2("span",{class:"judged"},k$2(ChainMark,{chain,isCounted:true})):null," ",extras.some(extra=>extra.sort!=="end")?k$2("button",{type:"button",class:"small",onClick:goToBreak},"Next break (b)"):null," ",isOfActions()||contents.value?.format==="proof"?null:k$2("a",{href:link("s",chain)},"as a session")),now.state==="working"||now.state==="not judged"?k$2(Band,{now,again:()=>verifyChain(chain),...judgement.value.state==="working"?{}:{total:total??0}}):null,extras.some(extra=>extra.sort!=="end")?k$2("p",{class:"beside tight"},"Records after a break have a dashed line: no longer tied to what came before. Each keeps its own mark."):null,k$2(WholeFindings,{findings:findings.filter(one=>one.place.sequence===null)})),words?k$2(Problem,{words,retry:()=>{
asked.current.clear()
if (isLive) fetchPages(0,PAGE$1)
else readFile(()=>true)
}}):null,total===0&&!words&&!length?k$2(Empty,{command:"aver log"},"There is no record in it."):null,k$2(VirtualRows,{heights,label:`Records of ${chain}; j and k move, Enter opens one`,isBusy:total===null,selected,handle:handle=>{
list.current=handle
},onRange:(start,stop)=>{
if (total===null||stop<=start) return
const places=[start,stop-1].map(index=>entry(index)).map(found=>found.sort==="row"?found.place:found.before)
fetchPages(places[0]??0,(places[1]??0)+1)
},row:drawRow}),k$2("p",{class:"beside"},total===null?"Reading …":`${count(total)} rows; j and k move, Enter opens, b goes to the next break.`))
}
var ROW_HEIGHT$2=40
var PHONE_ROW_HEIGHT$2=56
function ChainRow({chain,isLive}) {
return k$2("a",{class:`chain-row${isLive?" of-ledger":""}`,href:link("chain",chain.id),"data-row":true,tabIndex:-1},k$2("span",{class:"state"},k$2(ChainMark,{chain:chain.id})),k$2("span",{class:"what"},k$2("strong",null,k$2(Text,null,chain.title)),chain.title===chain.id?null:k$2("code",null,k$2(Text,null,chain.id))),k$2("span",{class:"number"},chain.length===null?"":count(chain.length)),k$2("span",{class:"when"},k$2(Time,{brief:true},chain.endedAt)),k$2("span",{class:"by"},chain.signers.length?chain.signers.slice(0,2).map(signer=>k$2(Hex,{key:signer},signer)):chain.head?k$2(Hex,null,chain.head):null))
}
function ChainsView(_) {
const [wanted,setWanted]=d$2("")
const box=T(null)
useRowKeys(box)
const all=contents.value?.chains??[]
const found=all.filter(chain=>`${chain.id} ${chain.title} ${chain.tool}`.toLowerCase().includes(wanted.toLowerCase()))
const heights=w$2(()=>Array(found.length).fill(isPhone()?PHONE_ROW_HEIGHT$2:ROW_HEIGHT$2),[found.length])
const isLive=contents.value?.format==="ledger"
return k$2("section",{class:"fills"},k$2("h1",null,"Chains"),k$2("form",{class:"filters",onSubmit:event=>event.preventDefault()},k$2("label",null,"Filter ",k$2("input",{type:"search",value:wanted,onInput:event=>setWanted(event.currentTarget.value),placeholder:"name, title or tool"})),k$2("span",{class:"beside",role:"status"},count(found.length)," of ",count(all.length))),all.length?null:isLive?k$2(Empty,{command:"aver install claude-code"},"Nothing is recorded in this ledger yet. This records what a coding agent does from now on."):k$2(Empty,{command:"aver export --out DIR"},"There is no chain in it. This writes a bundle with all chains of your ledger."),all.length&&!found.length?k$2(Empty,null,"No chain fits this filter."):null,found.length?k$2($,null,k$2("div",{class:`chain-row heads${isLive?" of-ledger":""}`,"aria-hidden":"true"},k$2("span",null,"State"),k$2("span",null,"Chain"),k$2("span",{class:"number"},"Records"),k$2("span",{class:"when"},isLive?"":"Last"),k$2("span",{class:"by"},isLive?"Head":"Signed by")),k$2("div",{ref:box,class:"grow"},k$2(VirtualRows,{heights,label:"Chains; j and k move, Enter opens one",row:at=>k$2(ChainRow,{chain:found[at],isLive})}))):null,k$2("p",{class:"beside"},"Titles, times and lengths are claims of ",isLive?"the server":"the index","; the verdict compares them with the records. ",k$2("a",{href:link("meta")},"What the meta chain remembers")))
}
var ORDER=["prompt","edit","hit","failure","denial","break"]
function Minimap({marks,share:[from,to],go,words}) {
const box=T(null)
const point=event=>{
const {top,height}=box.current.getBoundingClientRect()
go(Math.min(1,Math.max(0,(event.clientY-top)/height)))
}
A$1(()=>{
const view=box.current?.querySelector(".view")
if (view) [view.style.top,view.style.height]=[`${100*from}%`,`${Math.max(1,100*(to-from))}%`]
})
const map=w$2(()=>k$2(Marks,{marks}),[marks])
return k$2("div",{ref:box,class:"minimap","aria-hidden":"true",title:words,onPointerDown:event=>{
event.currentTarget.setPointerCapture(event.pointerId)
point(event)
},onPointerMove:event=>{
if (event.buttons&1) point(event)
}},map,k$2("div",{class:"view"}))
}
var COLUMNS$1={prompt:[0,16],edit:[3,5],hit:[6,5],failure:[8,5],denial:[8,5],break:[8,5]}
function Marks({marks}) {
return k$2("svg",{viewBox:"0 0 16 1000",preserveAspectRatio:"none",width:"16",height:"100%"},[...marks].sort((one,other)=>ORDER.indexOf(one.sort)-ORDER.indexOf(other.sort)).slice(-1500).map(({sort,at},index)=>k$2("rect",{key:index,class:sort,x:COLUMNS$1[sort][0],y:Math.round(at*994),width:COLUMNS$1[sort][1],height:"6"})))
}
var PATHS={prompt:"M3 3h10v7H7l-3 3v-3H3z",answer:"M3 4h10M3 8h10M3 12h6",edit:"M3 13l1-3 7-7 2 2-7 7z",command:"M3 5l3 3-3 3M8 11h5",call:"M8 3v10M3 8h10",note:"M8 7v5M8 4v.5",unknown:"M5.5 6a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M8 12.5v.5",unreadable:"M8 2l6 11H2zM8 6v3.5M8 11v.5",agent:"M4 3v4a3 3 0 0 0 3 3h5M9.5 7.5L12 10l-2.5 2.5",decision:"M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z"}
var NAMES={prompt:"prompt",answer:"answer",edit:"edit",command:"command",call:"tool call",note:"note",unknown:"unknown record",unreadable:"unreadable record",agent:"subagent",decision:"decision"}
function SortIcon({sort,isStruck=false}) {
return k$2("svg",{class:`sort-icon ${sort}${isStruck?" struck":""}`,viewBox:"0 0 16 16",width:"16",height:"16",role:"img","aria-label":NAMES[sort]},k$2("path",{d:PATHS[sort]}),isStruck?k$2("path",{class:"strike",d:"M2 14L14 2"}):null)
}
var ROW_HEIGHT$1=36
var PHONE_ROW_HEIGHT$1=56
var LINE_HEIGHT=22
var CHARACTER_WIDTH=8.4
function arrangeStory(entries,findingsOf) {
const rows=[]
const byChain=new Map()
let turn=0
for (const entry of entries) {
const {chain,depth,step}=entry
const found=byChain.get(chain)??byChain.set(chain,new ChainFindings(findingsOf(chain))).get(chain)
const bare={depth,chain,entry:null,findings:[],finding:null,place:null,words:"",isDenied:false,isFailed:false,isAfterBreak:found.isBroken,turn}
if (step===null) {
const {decision}=entry
if (decision===null) rows.push({...bare,sort:"agent",entry,words:`subagent ${entry.agent}`})
else rows.push({...bare,sort:"decision",entry,words:`${decisionLabel(decision.decision)}: ${decision.tool}`,isDenied:refuses(decision)&&!isObserved(decision)})
continue
}
const missing=found.findMissing(step.sequence,entry.place)
if (missing) rows.push({...bare,sort:"missing",words:missing})
const failed=found.take(entry.place).filter(finding=>finding.status==="failed")
for (const finding of failed.slice(0,1)) rows.push({...bare,sort:"break",finding,place:entry.place,isAfterBreak:true})
if (!failed.length&&isBookkeeping(step)) continue
if (step.what==="prompt"&&depth===0) turn++
const sort=stepSort(entry)
rows.push({...bare,sort,entry,findings:failed,words:"",isDenied:step.status==="blocked",isFailed:step.status==="failure",isAfterBreak:found.isBroken,turn})
}
for (const [chain,found] of byChain) {
const rest=found.rest()
const last=rows.findLastIndex(row=>row.chain===chain)
const bare={depth:rows[last]?.depth??0,chain,entry:null,findings:[],finding:null,place:null,words:"",isDenied:false,isFailed:false,isAfterBreak:true,turn:rows[last]?.turn??turn}
const cut=rest.find(finding=>finding.code==="TRUNCATED")
rows.splice(last+1,0,...rest.map(finding=>({...bare,sort:"break",finding})),...cut?[{...bare,sort:"end",words:`The end was cut: ${cut.words}`}]:[])
}
return rows
}
var ChainFindings=class {
isBroken=false
byPlace=new Map()
said=null
constructor(findings) {
for (const finding of findings) {
if (finding.place.sequence===null||finding.status!=="failed") continue
const key=String(finding.place.sequence)
this.byPlace.set(key,[...this.byPlace.get(key)??[],finding])
}
}
findMissing(sequence,place) {
const before=this.said
if (sequence!==null) this.said=sequence
if (sequence===null||sequence===place||before!==null&&sequence<=before+1||before===null&&place>0) return ""
const first=before===null?0:before+1
return first===sequence-1?`record ${first} is missing`:`records ${first} to ${sequence-1} are missing`
}
take(place) {
const key=String(place)
const found=(this.byPlace.get(key)??[]).filter(finding=>!(this.isBroken&&finding.code==="SEQUENCE_GAP"))
this.byPlace.delete(key)
if (found.length) this.isBroken=true
return found
}
rest() {
const left=[...this.byPlace.values()].flat()
return [...new Map(left.reverse().map(finding=>[finding.code,finding])).values()].filter(finding=>!(this.isBroken&&finding.code==="SEQUENCE_GAP"))
}
}
function stepSort({step}) {
if (step===null) return "note"
if (step.what==="call") return isEdit(step)?"edit":isCommand(step)?"command":"call"
if (step.what==="prompt"||step.what==="answer"||step.what==="unknown"||step.what==="unreadable") return step.what
return "note"
}
function rowHeight(row,width,isPhone,write=text=>text) {
if (row.sort!=="prompt") return isPhone?PHONE_ROW_HEIGHT$1:ROW_HEIGHT$1
const {asked="",askedLeft=0}=row.entry?.step??{}
const perLine=Math.max(16,Math.floor(.85*width/CHARACTER_WIDTH))
return 16+LINE_HEIGHT*(write(asked).replace(/[\u1100-\uffff]/g,"$&$&").split("\n").reduce((sum,line)=>sum+Math.max(1,Math.ceil(line.length/perLine)),0)+(askedLeft===0?0:1))
}
function isWanted(row,wanted) {
if (wanted.startsWith("model ")) return row.entry?.step?.model===wanted.slice(6)
switch (wanted) {
case "":return true
case "observed":return row.entry?.decision!=null&&isObserved(row.entry.decision)
case "failure":return row.isFailed
case "denial":return row.isDenied
case "call":return row.sort==="call"||row.sort==="edit"||row.sort==="command"||row.entry?.step?.what==="call"
case "spent":return row.entry?.step!=null&&(row.entry.step.spent.tokensIn!==null||row.entry.step.spent.tokensOut!==null||row.entry.step.spent.costUsd!==null)
case "command":return row.entry?.step!=null&&isCommand(row.entry.step)
default:return row.sort===wanted
}
}
var BESIDE_TEXT=180
var BESIDE_BREAK=124
var PHONE_WIDTH=720
function Timeline({rows,selected,hits,label,onSelect,onOpen}) {
const box=T(null)
const [width,setWidth]=d$2(800)
const [share,setShare]=d$2([0,1])
F$1(()=>{
const element=box.current
const observer=new ResizeObserver(()=>setWidth(element.clientWidth))
observer.observe(element)
setWidth(element.clientWidth)
return ()=>observer.disconnect()
},[])
const isPhone=typeof window!=="undefined"&&window.innerWidth<PHONE_WIDTH
const heights=w$2(()=>rows.map(row=>{
const inside=width-(isPhone?80:row.finding?BESIDE_BREAK:BESIDE_TEXT)-20*row.depth
return row.finding?breakHeight(row.finding,inside):rowHeight(row,inside,isPhone,visible)
}),[rows,width,isPhone])
const {rows:shown,total,reveal}=useVirtualRows(heights,()=>box.current)
A$1(()=>{
if (selected>=0) reveal(selected)
},[selected,heights])
const update=()=>{
const element=box.current
if (element&&total) setShare([element.scrollTop/total,(element.scrollTop+element.clientHeight)/total])
}
A$1(update,[total,width])
const marks=w$2(()=>listMarks(rows,heights,hits),[rows,heights,hits])
const space=T(null)
F$1(()=>{
if (space.current) space.current.style.height=`${total}px`
},[total])
return k$2("div",{class:"timeline-frame"},k$2("div",{ref:box,class:"story",role:"grid","aria-label":label,"aria-rowcount":rows.length,"aria-activedescendant":selected>=0?`row-${selected}`:void 0,tabIndex:0,onScroll:update},k$2("div",{ref:space,class:"space",role:"rowgroup"},shown.map(({index,start,size})=>{
const row=rows[index]
return row===void 0?null:k$2(StoryRow,{key:index,row,index,top:start,height:size,isSelected:index===selected,isHit:hits.has(row),onSelect,onOpen})
}))),k$2(Minimap,{marks,share,words:"prompts, edits, failures, denials, hits and breaks",go:at=>{
if (box.current) box.current.scrollTop=at*total-box.current.clientHeight/2
}}))
}
function listMarks(rows,heights,hits) {
const total=heights.reduce((sum,height)=>sum+height,0)||1
const marks=[]
let top=0
rows.forEach((row,index)=>{
const at=top/total
if (row.sort==="break"||row.sort==="missing") marks.push({sort:"break",at})
else if (row.isDenied) marks.push({sort:"denial",at})
else if (row.isFailed) marks.push({sort:"failure",at})
else if (row.sort==="edit"||row.sort==="prompt") marks.push({sort:row.sort,at})
if (hits.has(row)) marks.push({sort:"hit",at})
top+=heights[index]??0
})
return marks
}
function StoryRow({row,index,top,height,isSelected,isHit,onSelect,onOpen}) {
const element=T(null)
F$1(()=>{
const {style}=element.current;
[style.transform,style.height]=[`translateY(${top}px)`,`${height}px`]
style.setProperty("--depth",String(Math.min(row.depth,8)))
})
const names=["story-row",row.sort,isSelected?"selected":"",isHit?"hit":"",row.isAfterBreak?"after":"",row.findings.length?"broken":"",row.isDenied?"denied":"",row.isFailed?"failed":"",row.depth?"nested":""]
return k$2("div",{ref:element,id:`row-${index}`,class:names.filter(Boolean).join(" "),role:"row","aria-rowindex":index+1,"aria-selected":isSelected,onClick:()=>onSelect(index),onDblClick:()=>onOpen(index)},k$2(RowCells,{row}))
}
function RowCells({row}) {
const {entry,sort}=row
if (sort==="break"&&row.finding!==null) return k$2("div",{role:"gridcell",class:"break-card"},k$2(BreakCard,{chain:row.chain,finding:row.finding,place:row.place}))
if (sort==="end") return k$2("div",{role:"gridcell",class:"cap"},row.words)
if (sort==="missing") return k$2("div",{role:"gridcell",class:"missing-cell"},row.words)
const step=entry?.step??null
const at=step?.at??entry?.decision?.at??""
return k$2($,null,k$2("span",{role:"gridcell",class:"time"},at?k$2(Time,{short:true},at):null),k$2("span",{role:"gridcell",class:"rail-line","aria-hidden":"true"},k$2("span",{class:"node"})),k$2("span",{role:"gridcell",class:"icon"},k$2(SortIcon,{sort,isStruck:row.isDenied})),step!==null&&sort==="prompt"?k$2("span",{role:"gridcell",class:"asked"},visible(step.asked),step.askedLeft===0?null:k$2("span",{class:"soft"},step.askedLeft===null?"\n… its rest was not read; open it to try again":`\n… ${plural(step.askedLeft,"more line")}`)):k$2(Summary,{row}),step!==null&&sort!=="prompt"?k$2(Facts,{step}):null)
}
function Summary({row}) {
const {entry}=row
const step=entry?.step??null
const decision=entry?.decision??null
if (step===null) {
const why=decision===null?"":shownReasons(decision)[0]??decision.rules.join(" ")
return k$2("span",{role:"gridcell",class:"summary"},decision===null?k$2("strong",null,k$2(Text,null,row.words)):k$2($,null,k$2(Word,{row})," ",k$2(Text,null,decision.tool)," ",k$2("span",{class:"soft"},k$2(Text,null,why))))
}
const words=step.what==="answer"&&step.text?step.text:stepSummary(step).replace(/^denied: /,"")
return k$2("span",{role:"gridcell",class:"summary"},k$2(Word,{row}),k$2(Text,null,words))
}
function Word({row}) {
const {entry}=row
const step=entry?.step??null
const decision=entry?.decision??null
if (row.isDenied) return k$2("span",{class:"word bad"},"denied ",step===null?"by the gate":authorityLabel(step).split(" (",1)[0])
if (row.isFailed) return k$2("span",{class:"word warn"},"failed")
if (step?.status==="pending") return k$2("span",{class:"word"},"no outcome")
if (step===null&&decision!==null) return k$2("span",{class:"word"},isObserved(decision)?"observed: ":"",k$2(Text,null,decisionLabel(decision.decision)))
return null
}
function Facts({step}) {
const {tokensIn,tokensOut,costUsd}=step.spent
const tokens=tokensIn===null&&tokensOut===null?"":`${tokensIn===null?"–":count(tokensIn)} → ${tokensOut===null?"–":count(tokensOut)}`
return k$2($,null,k$2("span",{role:"gridcell",class:"authority",title:visible(authorityLabel(step))},k$2(Text,null,step.status==="blocked"?step.rule:authorityLabel(step))),k$2("span",{role:"gridcell",class:"lines"},k$2(Counts,{lines:step.lines})),k$2("span",{role:"gridcell",class:"tokens figure",title:costUsd===null?"tokens in and out":`tokens in and out, ${formatMoney(costUsd)}`},tokens),k$2("span",{role:"gridcell",class:"took figure"},step.durationMs===null?"":formatDuration(step.durationMs)))
}
var SHOWN_BLOB_MAX=1048576
async function readWholeStep(entry) {
const read=async place=>{
const record=await readRecordAt(entry.chain,place)
return record instanceof Sealed?readStep(record):null
}
const own=await read(entry.place)
const additions=(await Promise.all(entry.additions.map(read))).filter(step=>step!==null)
const shown=entry.step
return {step:await fetchStep(own===null?shown:shown.what!==own.what?promptOf(own):applyAdditions(own,additions),readBlob,SHOWN_BLOB_MAX),additions}
}
function BreakDetail({row,finding}) {
return k$2($,null,k$2("h2",null,"The chain breaks here"),k$2("div",{class:"break-detail"},k$2(BreakCard,{chain:row.chain,finding,place:row.place})),k$2("p",null,"Records after this place keep their own marks: intact in themselves, no longer tied to what came before."),k$2("p",null,row.place===null?null:k$2($,null,k$2("a",{href:link("c",row.chain,`p${row.place}`)},"The record at this place")," · "),k$2("a",{href:link("chain",row.chain)},"The chain as it is stored")))
}
function StepDetail({row}) {
const {entry}=row
const {value:whole,words,retry}=useAnswer(async ()=>entry?.step?readWholeStep(entry):null,[entry])
if (row.finding!==null) return k$2(BreakDetail,{row,finding:row.finding})
if (entry===null) return k$2("p",{class:"strip"},row.words||"Choose a row to see the whole of it.")
if (entry.step===null) return entry.decision===null?k$2($,null,k$2("h2",null,"Subagent ",k$2(Text,null,entry.agent)),k$2("p",null,"Its part of the session starts here, in a chain of its own: ",k$2("a",{href:link("chain",entry.chain)},k$2(Text,null,entry.chain)),".")):k$2($,null,k$2("h2",null,"A decision about a call that is in no transcript"),k$2(DecisionCard,{decision:entry.decision}))
const step=whole?.step??entry.step
const isCurrent=whole!==null&&whole.step.hash===entry.step.hash
return k$2("article",{class:"step-detail","aria-busy":!isCurrent},k$2("header",null,k$2("h2",null,k$2(SortIcon,{sort:row.sort,isStruck:row.isDenied})," ",k$2(Text,null,step.what==="prompt"?"Prompt":step.what==="answer"?"Answer":stepSummary(step))),k$2("p",{class:"beside"},step.at?k$2(Time,null,step.at):"at a time that the record does not say",step.model?k$2($,null," · ",k$2(Text,null,step.model)):null,step.durationMs===null?null:k$2($,null," · ",formatDuration(step.durationMs)),consumptionLabel(step.spent)?k$2($,null," · ",consumptionLabel(step.spent)):null),k$2("p",{class:"buttons"},k$2("a",{class:"button small",href:recordAddress(entry)},"Open the record"),k$2(Copy,{text:`capsule://${entry.chain}/${step.sequence??entry.place}`,label:"Copy its address"}))),words?k$2(Problem,{words,retry}):null,isCurrent&&step.cut.size?k$2(Problem,{words:"The rest of a long text of this step is missing, damaged or too large to be shown.",retry}):null,isCurrent?k$2(StepBody,{step}):k$2("div",{class:"placeholder tall"}),entry.decision===null?null:k$2("section",null,k$2("h3",null,"The gate"),k$2(DecisionCard,{decision:entry.decision})),isCurrent&&whole.additions.length?k$2(Additions,{steps:whole.additions,chain:entry.chain,places:entry.additions}):null)
}
function recordAddress({chain,place,step}) {
return link("c",chain,step!==null&&step.sequence===place?place:`p${place}`)
}
var PROSE_MAX=2e5
function Prose({text}) {
return k$2($,null,k$2("div",{class:"prose"},k$2(Linked,null,cutText(text,PROSE_MAX))),text.length>PROSE_MAX?k$2("p",{class:"beside"},"Only the first ",count(PROSE_MAX)," characters are laid out. ",k$2(Copy,{text,label:"copy the whole text"})):null)
}
function StepBody({step}) {
const given=isObject(step.arguments)?step.arguments:null
const command=step.what==="call"&&given!==null?commandLine(given):""
const results=resultTexts(step,step.result)
const error=stepError(step)
return k$2($,null,step.what==="prompt"?k$2(Prose,{text:step.asked}):null,step.text&&step.what!=="prompt"?k$2(Prose,{text:step.text}):null,step.thinking?k$2("details",{class:"thinking",open:!step.text&&step.what!=="call"},k$2("summary",null,"What the model thought"),k$2(Prose,{text:step.thinking})):null,step.redacted?k$2("p",{class:"beside"},"The model thought here, and its tool redacted the text. The record keeps the proof of it."):null,typeof step.diff==="string"&&step.diff?k$2(DiffView,{diff:step.diff,paths:changedPaths(step)}):null,command?k$2($,null,k$2("h3",null,"Command"),k$2("pre",{class:"command-line",tabIndex:0},k$2(Text,null,command))):null,step.what==="call"&&!command&&given?.size&&typeof step.diff!=="string"?k$2($,null,k$2("h3",null,"Arguments"),k$2(Value,{value:given})):null,error?k$2($,null,k$2("h3",null,"Error"),k$2(Terminal,{text:error,label:"Error"})):null,results.map((part,at)=>k$2("section",{key:at},k$2("h3",null,part.name?k$2(Text,null,part.name):part.isAside?"Result":"Output"),part.isAside?k$2("p",{class:"beside"},k$2(Linked,null,part.text)):k$2(Terminal,{text:part.text}))),typeof step.diff!=="string"&&step.diff!==null?k$2($,null,k$2("h3",null,"Change"),k$2(Value,{value:step.diff})):null,step.what!=="call"&&step.more!==null?k$2($,null,k$2("h3",null,"More"),k$2(Value,{value:step.more})):null,k$2("dl",{class:"facts"},authorityLabel(step)?k$2("div",null,k$2("dt",null,step.status==="blocked"?"Denied":"Allowed"),k$2("dd",null,k$2(Text,null,authorityLabel(step)))):null,step.status?k$2("div",null,k$2("dt",null,"Outcome"),k$2("dd",null,k$2(Text,null,step.status==="blocked"?"denied":step.status))):null,step.sideEffects.length?k$2("div",null,k$2("dt",null,"Side effects"),k$2("dd",null,k$2("ul",null,step.sideEffects.slice(0,50).map((effect,at)=>k$2("li",{key:at},k$2(Text,null,effect)))))):null))
}
function Additions({steps,chain,places}) {
return k$2("section",null,k$2("h3",null,"Later records about the same step"),k$2("ul",null,steps.map((step,at)=>k$2("li",{key:step.hash||at},k$2("a",{href:link("c",chain,`p${places[at]??0}`)},"record ",places[at])," from the ",k$2(Text,null,step.addition?.via||"transcript"),step.addition?.status?k$2($,null,"; it says that the call ended with ",k$2("strong",null,k$2(Text,null,step.addition.status))):null,step.addition?.differs.length?k$2("span",{class:"warn"},"; both disagree in ",k$2(Text,null,step.addition.differs.join(", "))):null))))
}
var STORY_MAX=2e4
var WIDE=1200
var TYPING_MS=250
var last=null
function recall(chain) {
return last!==null&&last.open===contents.value&&chainNames(last.chains).includes(chain)?{state:"done",...last}:null
}
function useSession(chain) {
const [progress,setProgress]=d$2({records:0,total:0})
const {value,words,retry}=useAnswer(async isCurrent=>{
const open=contents.value
const recalled=recall(chain)
if (recalled!==null) return recalled
const chains=await findSession(chain)
if (open===null||chains===null) return {state:"none"}
const total=countRecords(chainNames(chains))
if (total>STORY_MAX) return {state:"too large",chains,total}
const report=records=>{
if (!isCurrent()) throw new Left()
setProgress({records,total})
}
const {totals,entries}=await readSession(chains,readRecords,readBlob,report)
const reading={totals,entries:await fetchPrompts(entries,readBlob,()=>report(total))}
last={open,chains,reading}
return {state:"done",chains,reading}
},[chain,contents.value])
return {...recall(chain)??(words?{state:"failed",words}:value??{state:"loading",...progress}),again:retry}
}
function SessionProblem({now,chain}) {
if (now.state==="loading") return k$2("div",{"aria-busy":"true"},k$2("h1",null,k$2(Text,null,chain)),k$2("p",{class:"beside",role:"status"},"Reading ",now.total?`${count(now.records)} of ${plural(now.total,"record")}`:"its records"," …"),Array.from({length:12},(_,at)=>k$2("div",{key:at,class:"story-row-loading"})))
if (now.state==="too large") return k$2($,null,k$2("h1",null,k$2(Text,null,now.chains.session)),k$2("p",{class:"strip"},"This session has ",plural(now.total,"record"),". A page lays out at most ",count(STORY_MAX)," as a story. Its chains can be read in their stored order, and this command tells all of it:"),k$2("p",null,k$2(Command,null,`aver show ${now.chains.session} --html session.html`)),k$2("ul",null,chainNames(now.chains).map(name=>k$2("li",{key:name},k$2("a",{href:link("chain",name)},k$2(Text,null,name))))))
if (now.state==="failed") return k$2($,null,k$2("h1",null,k$2(Text,null,chain)),k$2("div",{class:"finding failed",role:"alert"},k$2("p",null,"The session could not be read: ",k$2(Text,null,now.words))),k$2("p",null,k$2("button",{type:"button",onClick:now.again},"Try again")," or read ",k$2("a",{href:link("chain",chain)},"the chain as it is stored"),"."))
return null
}
function SessionView({parts}) {
const [chain="",wanted]=parts
const now=useSession(chain)
if (now.state==="none") return k$2(ChainView,{parts})
if (now.state!=="done") return k$2(SessionProblem,{now,chain})
return k$2(Story,{chain,wanted:wanted??"",chains:now.chains,reading:now.reading})
}
function Story({chain,wanted,chains,reading}) {
const names=chainNames(chains)
const [only,setOnly]=d$2("")
const [selected,setSelected]=d$2(null)
const [isOpen,setOpen]=d$2(false)
const [words,setWords]=d$2("")
const all=w$2(()=>arrangeStory(reading.entries,findingsOf),[reading,...names.map(judgementOf)])
const rows=w$2(()=>all.filter(row=>isWanted(row,only)),[all,only])
const hits=useHits(words,names,all)
const index=selected===null?-1:rows.indexOf(selected)
const isWide=useIsWide()
const unjudged=unjudgedOf(names)
A$1(()=>{
for (const name of unjudged) verifyChain(name)
},[judgement.value.state,unjudged.join("\n")])
A$1(()=>{
const sequence=/^at-(\d+)$/.exec(wanted)?.[1]
const found=sequence===void 0?void 0:findRow(all,chain,Number(sequence))
if (found) select(found)
else setSelected(before=>before===null?null:all.find(row=>row.entry!==null&&row.entry.chain===before.entry?.chain&&row.entry.place===before.entry.place&&row.sort===before.sort)??null)
},[all,wanted,chain])
function select(row) {
setSelected(row)
const step=row.entry?.step
if (!step||row.entry===null) return
history.replaceState(null,"",link("s",row.chain,`at-${step.sequence??row.entry.place}`))
}
const move=(step,isGood=()=>true)=>{
for (let at=index<0?step>0?0:rows.length-1:index+step; at>=0&&at<rows.length; at+=step) {
const row=rows[at]
if (isGood(row)) return select(row)
}
}
const seek=(step,isGood)=>{
const found=(step>0?[...rows.slice(index+1),...rows.slice(0,index+1)]:[...rows.slice(0,Math.max(index,0)).reverse(),...rows.slice(Math.max(index,0)).reverse()]).find(isGood)
if (found) select(found)
}
const open=at=>{
const row=rows[at]
if (!row) return
if (!isWide&&!isOpen) setOpen(true)
else if (row.entry?.step) location.hash=recordAddress(row.entry)
}
useGridKeys({j:()=>move(1),k:()=>move(-1),ArrowDown:()=>move(1),ArrowUp:()=>move(-1),J:()=>move(1,row=>row.sort==="prompt"&&row.depth===0),K:()=>move(-1,row=>row.sort==="prompt"&&row.depth===0),e:()=>seek(1,row=>row.sort==="edit"),x:()=>seek(1,row=>row.isFailed||row.isDenied),b:()=>seek(1,row=>row.sort==="break"||row.sort==="missing"),n:()=>seek(1,row=>hits.rows.has(row)),N:()=>seek(-1,row=>hits.rows.has(row))})
useKeys({Enter:()=>open(index),Escape:()=>{
if (isOpen) setOpen(false)
else if (only) setOnly("")
else history.back()
}})
const breaks=all.filter(row=>row.sort==="break").length
const detail=selected===null?k$2("p",{class:"strip"},"Choose a row to see the whole of it. ",k$2("kbd",null,"j")," and ",k$2("kbd",null,"k")," move, ",k$2("kbd",null,"?")," lists all keys."):k$2(StepDetail,{row:selected})
return k$2("section",{class:"session-view"},k$2(SessionHead,{chains,reading,only,setOnly,breaks,shown:rows.length}),k$2("p",{class:"find"},k$2("label",null,"Find in this session ",k$2("input",{type:"search",value:words,onInput:event=>setWords(event.currentTarget.value),onKeyDown:event=>{
if (event.key==="Enter") seek(event.shiftKey?-1:1,row=>hits.rows.has(row))
}})),k$2("span",{class:"beside",role:"status"},hits.words),breaks?k$2("button",{type:"button",class:"small",onClick:()=>seek(1,row=>row.sort==="break")},"Next break (b)"):null),k$2(Split,{isWide,isOpen:isOpen&&selected!==null,close:()=>setOpen(false),timeline:rows.length?k$2(Timeline,{rows,selected:index,hits:hits.rows,label:"Steps of the session",onSelect:at=>{
if (rows[at]) {
select(rows[at])
if (!isWide) setOpen(true)
}
},onOpen:open}):k$2("p",{class:"strip"},"No step is of this sort. ",k$2("button",{type:"button",class:"small",onClick:()=>setOnly("")},"Show all")),detail}))
}
function findRow(rows,chain,sequence) {
const isThere=row=>row.chain===chain&&(row.entry?.step?.sequence===sequence||row.finding?.place.sequence===sequence||String(row.finding?.place.sequence)===String(sequence))
return rows.find(row=>row.sort==="break"&&isThere(row))??rows.find(isThere)??rows.find(row=>row.entry?.decision?.chain===chain&&row.entry.decision.sequence===sequence)
}
function SessionHead({chains,reading,only,setOnly,breaks,shown}) {
const {totals}=reading
const names=chainNames(chains)
const states=names.map(judgementOf)
const isFailed=breaks>0||names.some(name=>findingsOf(name).some(finding=>finding.status==="failed"))
const words=states.map(state=>state.state!=="done"?state.state==="working"?"working":"not judged":state.verdict.status==="failed"?"qualified":state.verdict.status)
const mark=isFailed?"failed":["working","not judged","qualified","empty"].find(word=>words.includes(word))??"verified"
const note={failed:"a record of it does not hold",verified:"every record of it is verified",qualified:"nothing failed in it, and not everything could be checked",empty:"it has no record",working:"being verified","not judged":"not judged"}[mark]
const choice=(wanted,words,state="")=>k$2("button",{key:wanted,type:"button",class:`small figure ${state}`,"aria-pressed":only===wanted,onClick:()=>setOnly(only===wanted?"":wanted)},words)
return k$2("header",{class:"session-head"},k$2("h1",null,k$2(Text,null,totals.title||chains.session)),k$2("p",{class:"beside"},k$2(Mark,{name:mark})," ",k$2("strong",null,mark),", ",note," · ",k$2(Text,null,chains.tool)," ",k$2("code",null,k$2(Text,null,chains.session)),totals.started?k$2($,null," · ",k$2(Time,null,totals.started)):null," · ",k$2("a",{href:link("files",chains.main??names[0]??"")},"Files")," · ",k$2("a",{href:link("chain",chains.main??names[0]??"")},"As stored")),k$2("div",{class:"figures",role:"group","aria-label":"Figures; each leads to its rows"},totalFigures(totals).map(({words,sort},at)=>{
if (sort==="record") return k$2(RecordsFigure,{key:at,words,names})
return sort?choice(sort,k$2(Text,null,words)):k$2("span",{key:at,class:"figure"},words)
}),totals.observed?choice("observed",`${plural(totals.observed,"decision")} only observed`,"warn"):null,breaks?choice("break",plural(breaks,"break")):null,only?k$2("button",{type:"button",class:"small",onClick:()=>setOnly("")},"Show all steps (",plural(shown,"row")," shown)"):null))
}
function RecordsFigure({words,names}) {
if (names.length===1) return k$2("a",{class:"figure",href:link("chain",names[0]??"")},words)
return k$2("details",{class:"figure"},k$2("summary",null,words),k$2("ul",null,names.map(name=>k$2("li",{key:name},k$2("a",{href:link("chain",name)},plural(countRecords([name]),"record")," in ",k$2(Text,null,name))))))
}
function useHits(words,chains,rows) {
const wanted=words.trim()
const answer=useAnswer(async isCurrent=>{
await new Promise(resolve=>setTimeout(resolve,TYPING_MS))
const {hits}=wanted&&isCurrent()?await connection.ask({type:"search",words:wanted,limit:STORY_MAX,chains}):{hits:[]}
return {wanted,places:new Set(hits.map(({chain,row})=>`${chain}\n${row.place}`))}
},[wanted,chains.join("\n")])
const found=answer.value
const hits=w$2(()=>{
const placesOf=row=>[row.entry?.place??-1,...row.entry?.additions??[]]
return new Set(found===null?[]:rows.filter(row=>row.entry!==null&&placesOf(row).some(place=>found.places.has(`${row.chain}\n${place}`))))
},[found,rows])
return {rows:hits,words:!wanted?"":answer.words||(found?.wanted===wanted?`${plural(hits.size,"hit")}; n and N go through them.`:"looking …")}
}
function useIsWide() {
const [isWide,setWide]=d$2(innerWidth>=WIDE)
A$1(()=>{
const query=matchMedia(`(min-width: ${WIDE}px)`)
const update=()=>setWide(query.matches)
query.addEventListener("change",update)
return ()=>query.removeEventListener("change",update)
},[])
return isWide
}
function hideBehind(cover) {
const hidden=[]
for (let inside=cover; inside.id!=="main"&&inside.parentElement; inside=inside.parentElement) hidden.push(...[...inside.parentElement.children].filter(one=>one!==inside&&!one.inert))
for (const one of hidden) one.inert=true
return ()=>{
for (const one of hidden) one.inert=false
}
}
var DETAIL_MIN=320
var DETAIL_MAX=640
var chosenWidth=0
function Split({isWide,isOpen,close,timeline,detail}) {
const box=T(null)
const [width,setWidth]=d$2(chosenWidth)
const limit=value=>Math.round(Math.min(DETAIL_MAX,Math.max(DETAIL_MIN,value)))
const set=value=>{
chosenWidth=limit(value)
setWidth(chosenWidth)
}
const now=()=>width||limit(.4*(box.current?.clientWidth??1200))
const isCovered=isOpen&&!isWide
const cover=T(null)
const back=T(null)
F$1(()=>{
if (!isCovered) return
const before=document.activeElement
const uncover=hideBehind(cover.current)
back.current?.focus()
return ()=>{
uncover()
focusGrid()
before?.focus({preventScroll:true})
}
},[isCovered])
F$1(()=>{
box.current?.style.setProperty("--detail",width?`${width}px`:"40%")
},[width,isWide])
if (!isWide) return k$2("div",{class:"session-split narrow"},timeline,isCovered?k$2("div",{class:"detail cover",ref:cover,role:"dialog","aria-modal":"true","aria-label":"The step"},k$2("p",{class:"close"},k$2("button",{type:"button",ref:back,onClick:close},"Back to the timeline")),detail):null)
return k$2("div",{class:"session-split",ref:box},timeline,k$2("div",{class:"handle",role:"separator","aria-orientation":"vertical","aria-label":"Width of the detail",tabIndex:0,"aria-valuenow":width||Math.round(480),"aria-valuemin":DETAIL_MIN,"aria-valuemax":DETAIL_MAX,onPointerDown:event=>event.currentTarget.setPointerCapture(event.pointerId),onPointerMove:event=>{
if (event.buttons&1&&box.current) set(box.current.getBoundingClientRect().right-event.clientX)
},onKeyDown:event=>{
if (event.key==="ArrowLeft") set(now()+24)
else if (event.key==="ArrowRight") set(now()-24)
else return
event.preventDefault()
event.stopPropagation()
}}),k$2("aside",{class:"detail","aria-label":"The step",tabIndex:0},detail))
}
var EDITS_SHOWN=25
function FilesView({parts:[chain="",wanted=""]}) {
const now=useSession(chain)
if (now.state==="none") return k$2($,null,k$2("h1",null,"Files"),k$2(Empty,{command:"aver ingest --all"},"This chain is no session of a coding agent, so no file is known. ",k$2("a",{href:link("chain",chain)},"Read the chain"),", or record sessions:"))
if (now.state!=="done") return k$2(SessionProblem,{now,chain})
return k$2(Files,{chain,wanted,reading:now.reading})
}
function Files({chain,wanted,reading}) {
const files=w$2(()=>listFiles(reading.entries),[reading])
const chosen=files.find(file=>file.path===wanted)??files[0]
const box=T(null)
useRowKeys(box)
return k$2("section",{class:"files-view"},k$2("h1",null,"Files of ",k$2(Text,null,reading.totals.title||reading.totals.session)),k$2("p",{class:"beside"},k$2("a",{href:link("s",chain)},"The session")," · ",plural(files.length,"file")," changed by ",plural(reading.totals.edits,"edit")," ",k$2(Counts,{lines:[reading.totals.linesAdded,reading.totals.linesRemoved]})),files.length===0?k$2("p",{class:"strip"},"No step of this session changed a file. Edits that failed or were denied changed none; the session shows them."):null,k$2("div",{class:"files-split"},k$2("nav",{"aria-label":"Files",ref:box},k$2("ul",null,files.map(file=>k$2("li",{key:file.path},k$2("a",{href:link("files",chain,file.path),"data-row":true,tabIndex:file===chosen?0:-1,"aria-current":file===chosen?"true":void 0},k$2("span",{class:"path"},k$2(Text,null,file.path)),k$2("span",{class:"beside"},plural(file.edits.length,"edit")," ",k$2(Counts,{lines:file.lines[0]||file.lines[1]?file.lines:null}))))))),chosen?k$2(FileChanges,{key:chosen.path,file:chosen}):null))
}
function FileChanges({file}) {
const [shown,setShown]=d$2(EDITS_SHOWN)
return k$2("div",{class:"file-changes"},k$2("h2",null,k$2(Text,null,file.path)),file.edits.slice(0,shown).map(entry=>k$2(FileChange,{key:`${entry.chain} ${entry.place}`,entry,path:file.path})),file.edits.length>shown?k$2("button",{type:"button",onClick:()=>setShown(shown+EDITS_SHOWN)},"Show ",Math.min(EDITS_SHOWN,file.edits.length-shown)," more changes"):null)
}
function FileChange({entry,path}) {
const {value,words,retry}=useAnswer(()=>readWholeStep(entry),[entry])
const step=value?.step??null
const title=entry.step===null?"":stepSummary(entry.step)
return k$2("section",{class:"file-change"},k$2("h3",null,entry.step?.at?k$2(Time,{short:true},entry.step.at):null," ",k$2("a",{href:recordAddress(entry)},k$2(Text,null,title))),words?k$2(Problem,{words,retry}):null,step===null&&!words?k$2("div",{class:"placeholder tall","aria-busy":"true"}):null,step===null?null:typeof step.diff==="string"?k$2(DiffView,{diff:diffOfFile(step.diff,path),title:path}):step.diff===null?k$2("p",{class:"beside"},"The record has no diff of this change."):k$2(Output,{value:step.diff}))
}
function Whole({value}) {
return k$2("code",{class:"whole"},visible(value.replace(/(.{16})/g,"$1 ").trim()))
}
function OwnerCell({owner,isKnown}) {
if (owner===void 0) return k$2("td",{class:"soft"},isKnown?"nobody says":"not read")
return k$2("td",null,k$2(Text,null,owner.identity),owner.isRetired?k$2($,null," ",k$2("span",{class:"word"},"retired")):null,k$2("p",{class:"beside tight"},"says ",k$2(Text,null,owner.from)))
}
function storageWords() {
if (contents.value===null) return "A key that you pin now is pinned for what you open next."
const of=contents.value.ledger?`the ledger ${contents.value.ledger.slice(0,8)}, tenant ${contents.value.tenant}`:""
if (location.protocol==="file:") return `This page was opened from a file, where pages share one store. Pins${of?` for ${of},`:""} hold until you close it.`
if (of) return `Pins are kept in this browser, for this address and ${of}.`
return "This names no ledger. Pins for such things are kept in this browser, for this address."
}
var FINGERPRINTS=/(?<!passkey )\b[0-9a-f]{16}\b/g
var RECORDS_MAX=200
function KeyRecords() {
const isThere=contents.value?.chains.some(chain=>chain.id==="keys")??false
const answer=useAnswer(()=>isThere?connection.ask({type:"rows",chain:"keys",start:0,stop:RECORDS_MAX}):Promise.resolve(null),[contents.value])
if (!isThere) return null
const words=answer.words||answer.value?.rows.find(row=>row.problem)?.problem
return k$2("section",null,k$2("h2",null,"Recorded in the keys chain"),words?k$2(Problem,{words,retry:answer.retry}):null,answer.state==="loading"?k$2(Loading,{rows:2,words:"Reading the keys chain"}):null,answer.value?k$2(Table,{label:"Records of the keys chain"},answer.value.rows.map(row=>k$2("tr",{key:row.place},k$2("td",null,k$2(Time,null,row.at)),k$2("td",null,k$2(Text,null,row.kind)),k$2("td",null,k$2("a",{href:recordLink("keys",row)},k$2(Text,null,row.problem||row.summary)))))):null,answer.value&&answer.value.total>RECORDS_MAX?k$2("p",null,k$2("a",{href:link("chain","keys")},"All ",answer.value.total," records")):null)
}
function KeysView(_) {
const [given,setGiven]=d$2("")
const [words,setWords]=d$2("")
const [done,setDone]=d$2("")
const pinAll=(read,origin)=>{
try {
const keys=read()
for (const key of keys) pinKey(key,origin)
setGiven("")
setWords("")
setDone(`${plural(keys.length,"key")} pinned.`)
verifyThing()
} catch (error) {
setDone("")
setWords(error.message)
}
}
const isPinned=key=>pins.value.some(pin=>pin.publicKey===key)
const judged=judgement.value.state==="done"?judgement.value:null
const fits=new Map(judged?.fits.map(([signer,counts])=>[signer,[counts]]))
const pq=new Map(contents.value?.pqKeys)
const named=useAnswer(readOwners,[contents.value])
const [owners,isKnown]=[named.value??new Map(),named.state==="done"]
const came=new Map(contents.value?.keys)
for (const [fingerprint,{key,keyPq}] of owners) {
if (came.has(fingerprint)) continue
came.set(fingerprint,key)
pq.set(fingerprint,keyPq)
}
const unknown=judged?.verdict.findings.flatMap(({code,words})=>code==="UNKNOWN_SIGNER"?words.match(FINGERPRINTS)??[]:[])??[]
const strangers=new Set([...judged?.strangers??[],...unknown].filter(signer=>signer&&!came.has(signer)))
const source=thing.value?.live?"The server says":"Came with the records"
return k$2($,null,k$2("h1",null,"Keys"),k$2("p",null,"A key that came with the records proves nothing: whoever made the records could have put it there. Pin only a key that you compared with its owner, by another way."),k$2("section",null,k$2("h2",null,"Pinned by you"),pins.value.length?k$2(Table,{label:"Pinned keys",of:"plain keys",heads:["Owner","Key","From","When",k$2("span",{class:"hidden"},"Unpin")]},pins.value.map(pin=>k$2("tr",{key:pin.publicKey},k$2(OwnerCell,{owner:owners.get(pin.publicKey.slice(0,16)),isKnown}),k$2("td",null,k$2(Whole,{value:pin.publicKey}),pin.publicKeyPq?k$2("p",{class:"beside tight"},"with an ML-DSA-65 half"):null,isRetired(pin)?k$2("p",{class:"beside tight"},"retired, by its owner's export"):null),k$2("td",null,k$2(Text,null,pin.origin)),k$2("td",null,k$2(Time,null,pin.at)),k$2("td",null,k$2("button",{type:"button",class:"small","aria-label":`Unpin ${pin.publicKey.slice(0,16)}`,onClick:()=>{
unpinKey(pin.publicKey)
verifyThing()
}},"Unpin"))))):k$2(Empty,{command:"aver keys export"},"None. Signatures are not checked until you pin a key. Its owner prints it by this command."),k$2("form",{onSubmit:event=>{
event.preventDefault()
pinAll(()=>readKeys(given),"pasted")
}},k$2("label",null,"Paste a key: 64 hex digits, or the text of a key export",k$2("br",null),k$2("textarea",{rows:3,value:given,onInput:event=>setGiven(event.currentTarget.value),spellcheck:false,autocomplete:"off","data-testid":"key"})),k$2("p",null,k$2("button",{type:"submit","data-testid":"pin"},"Pin it")," ",k$2("label",{class:"button"},"Choose a file",k$2("input",{type:"file",class:"hidden",onChange:event=>{
const file=event.currentTarget.files?.[0]
if (file) file.text().then(text=>pinAll(()=>readKeys(text),`from ${file.name}`))
}})))),words?k$2(Problem,{words}):null,k$2("p",{class:"good",role:"status"},done),k$2("p",{class:"beside"},k$2(Text,null,storageWords()))),k$2(KeyRecords,null),k$2("section",null,k$2("h2",null,source),came.size||strangers.size?k$2(Table,{label:"Keys that came along",of:"plain keys",heads:["Owner","Key","State",k$2("span",{class:"hidden"},"Pin")]},[...came].map(([fingerprint,key])=>k$2("tr",{key:fingerprint},k$2(OwnerCell,{owner:owners.get(fingerprint),isKnown}),k$2("td",null,k$2(Whole,{value:key})," ",k$2(Copy,{text:key,label:"copy"})),k$2("td",null,isPinned(key)?k$2("span",{class:"good"},"pinned"):k$2($,null,k$2("span",{class:"warn"},"not pinned, not used"),k$2(FitWords,{fits:fits.get(fingerprint)??[]}))),k$2("td",null,isPinned(key)?null:k$2("button",{type:"button",class:"small",onClick:()=>pinAll(()=>[toPin(new PublicKey(key,pq.get(fingerprint)))],`${thing.value?.live?"listed by the server":"came with the records"}, and compared by you`)},"I compared it: pin it")))),isKnown?[...strangers].map(signer=>k$2("tr",{key:signer},k$2("td",{class:"soft"},"nobody says"),k$2("td",null,k$2("code",null,k$2(Text,null,signer))),k$2("td",{colSpan:2},k$2("span",{class:"warn"},"signed here, and its key did not come along.")," Ask its owner for the key: ",k$2(Command,null,"aver keys export")))):null):k$2("p",{class:"soft"},"No key came along.")))
}
var ROW_HEIGHT=40
var PHONE_ROW_HEIGHT=56
function countHere({chain,here}) {
const cut=findingsOf(chain).find(one=>one.code==="TRUNCATED"&&one.place.sequence!==null)
return cut===void 0?here:Number(cut.place.sequence)
}
function wrongWords(entry) {
const here=countHere(entry)
const isFailed=findingsOf(entry.chain).some(one=>one.check==="meta"&&one.status==="failed")
const now=judgementOf(entry.chain)
if (here===null) return isFailed||now.state==="done"&&now.verdict.status==="failed"&&entry.kind!=="chain.drop"?"not here":""
if (here<entry.count) return `${plural(entry.count-here,"record")} missing`
return isFailed?"another head":""
}
function Standing({entry}) {
const wrong=wrongWords(entry)
if (wrong) return k$2($,null,k$2(Mark,{name:"failed"})," ",k$2("strong",{class:"bad"},wrong))
const now=judgementOf(entry.chain)
const isDropped=entry.here===null&&entry.kind==="chain.drop"
const isSigned=now.state==="done"&&now.verdict.checks.some(check=>check.name==="signature"&&check.status==="passed")
const more=(entry.here??0)-entry.count
const words=isDropped?"dropped since":entry.here===null?"not here":more>0?`${count(more)} more since`:"as recorded"
return k$2($,null,k$2(Mark,{name:now.state!=="done"?"not judged":isSigned&&(entry.here!==null||isDropped)?"verified":"qualified"})," ",k$2("span",null,words))
}
function rank(entry) {
return wrongWords(entry)?0:(entry.here??0)>entry.count?1:2
}
function MetaView(_) {
const answer=useAnswer(()=>connection.ask({type:"meta"}),[contents.value])
const entries=[...answer.value?.entries??[]].sort((one,other)=>rank(one)-rank(other)||(one.chain<other.chain?-1:1))
const heights=w$2(()=>Array(entries.length).fill(isPhone()?PHONE_ROW_HEIGHT:ROW_HEIGHT),[entries.length])
const box=T(null)
useRowKeys(box)
const unrecorded=answer.value?.unrecorded??0
return k$2("section",{class:"fills"},k$2("h1",null,"Meta"),k$2("p",null,"The ledger notes in its meta chain how long each chain is. A chain that is shorter than its note was cut; one that is longer has grown, which is normal."),answer.state==="failed"?k$2(Problem,{words:answer.words,retry:answer.retry}):null,answer.state==="loading"?k$2(Loading,{rows:8,words:"Reading the meta chain"}):null,answer.value&&!answer.value.records?contents.value?.format==="ledger"?k$2(Empty,{command:"aver checkpoint"},"There is no meta chain in this ledger yet. Closing a chain or a checkpoint begins it."):k$2(Empty,{command:"aver export --out DIR"},"There is no meta chain in it. A bundle of some chains only has none; this exports all of them, with meta."):null,answer.value?.records&&!entries.length?k$2(Empty,{command:"aver checkpoint"},"The meta chain records no chain yet. Closing a chain or a checkpoint adds an entry."):null,entries.length?k$2($,null,k$2("p",{class:"beside"},plural(answer.value?.records??0,"entry","entries"),"; the latest about each chain counts. ",answer.value?.isCut?"Only the first are listed. ":"",k$2("a",{href:link("chain","meta")},"The chain itself"),unrecorded?` · ${plural(unrecorded,"chain")} not recorded yet`:""),k$2("div",{class:"meta-row heads","aria-hidden":"true"},k$2("span",null,"Standing"),k$2("span",null,"Chain"),k$2("span",{class:"number"},"Recorded"),k$2("span",{class:"number"},"Here"),k$2("span",{class:"hash"},"Head then"),k$2("span",{class:"when"},"Noted")),k$2("div",{class:"grow",ref:box},k$2(VirtualRows,{heights,label:"Chains that meta knows; j and k move, Enter opens one",row:at=>{
const entry=entries[at]
return k$2("div",{class:"meta-row"},k$2("span",{class:"state"},k$2(Standing,{entry})),k$2("span",{class:"what"},entry.here===null?k$2(Text,null,entry.chain):k$2("a",{href:link("chain",entry.chain),"data-row":true,tabIndex:-1},k$2(Text,null,entry.chain))),k$2("span",{class:"number"},count(entry.count)),k$2("span",{class:"number"},countHere(entry)===null?"–":count(countHere(entry)??0)),k$2("span",{class:"hash"},entry.hash?k$2(Hex,null,entry.hash):null),k$2("span",{class:"when"},k$2(Time,null,entry.at)))
}}))):null,k$2("p",{class:"beside"},"These are the words of the meta chain. The verdict has compared each with the records where there is a tick."))
}
function MoreView() {
const shown=VIEWS.filter(view=>view.rail!=="none"&&(view.needs!=="records"||contents.value!==null))
return k$2($,null,k$2("h1",null,"All views"),k$2("ul",{class:"entries"},shown.map(view=>k$2("li",{key:view.route},k$2("a",{href:link(...view.route?[view.route]:[])},view.title)))))
}
var FILES_MAX=5e4
function fromFileList(list) {
const files=[...list]
const first=files[0]
if (first===void 0) return null
const path=first.webkitRelativePath
if (path) {
const folder=path.split("/",1)[0]
return asFolder(folder,files.map(file=>[file.webkitRelativePath.slice(folder.length+1),file]))
}
if (files.length===1) return {name:first.name,files:[[first.name,first]],isFolder:false}
return asFolder("the chosen files",files.map(file=>[file.name,file]))
}
function asFolder(name,files) {
return {name,files,isFolder:true}
}
async function fromDrop(transfer) {
const items=[...transfer.items].filter(item=>item.kind==="file")
const plain=[...transfer.files]
const handles=items.map(item=>{
return item.getAsFileSystemHandle?.()
})
if (items.length===1&&handles[0]!==void 0) {
const handle=await handles[0].catch(()=>null)
if (handle?.kind==="directory") {
const files=[]
await collect(handle,"",files)
return asFolder(handle.name,files)
}
}
return fromFileList(plain)
}
async function collect(directory,prefix,files) {
for await (const entry of directory.values()) {
if (files.length>=FILES_MAX) throw new Error(`This folder has more than ${FILES_MAX.toLocaleString("en")} files, which are too many to drop. Choose the folder instead, or run: aver verify FOLDER`)
if (entry.kind==="file") files.push([prefix+entry.name,await entry.getFile()])
else await collect(entry,`${prefix}${entry.name}/`,files)
}
}
var choices=0
function show(found) {
choices++
const [view=""]=route.value
if (contents.value!==null||!["c","ref","s","chain"].includes(view)) location.hash="#/"
openThing(found)
}
function OpenView(_) {
const [isOver,setOver]=d$2(false)
const files=T(null)
const folder=T(null)
const take=input=>{
const found=input?.files?fromFileList(input.files):null
if (found!==null) show(found)
if (input) input.value=""
}
return k$2("section",{class:"open"},k$2("h1",null,"See it, and prove it here"),k$2("p",null,"Choose a record, and this page judges it in your browser. Nothing leaves your machine, and no server is asked."),k$2("div",{class:`drop${isOver?" over":""}`,onDragOver:event=>{
event.preventDefault()
setOver(true)
},onDragLeave:()=>setOver(false),onDrop:event=>{
event.preventDefault()
setOver(false)
const mine=++choices
if (event.dataTransfer) fromDrop(event.dataTransfer).then(found=>found&&mine===choices&&show(found),error=>{
if (mine===choices) problem.value=error.message
})
}},k$2("p",{class:"large"},"Drop a bundle's folder or a file here"),k$2("p",null,k$2("button",{type:"button",onClick:()=>folder.current?.click()},"Choose a folder")," ",k$2("button",{type:"button",onClick:()=>files.current?.click()},"Choose a file")),k$2("input",{ref:files,type:"file",multiple:true,hidden:true,"data-testid":"files",onChange:()=>take(files.current)}),k$2("input",{ref:element=>{
element?.setAttribute("webkitdirectory","")
folder.current=element
},type:"file",hidden:true,"data-testid":"folder",onChange:()=>take(folder.current)})),opening.value?k$2("p",{class:"strip",role:"status"},k$2(Text,null,opening.value)," …"):null,problem.value?k$2("div",{class:"finding failed",role:"alert"},k$2("p",null,k$2("strong",null,"Not judged.")," ",k$2(Text,null,problem.value)),retryOpening.value?k$2("p",null,k$2("button",{type:"button",class:"small",onClick:retryOpening.value},"Try again")):null):null,k$2("h2",null,"What it judges"),k$2("table",{class:"plain"},k$2("tbody",null,k$2("tr",null,k$2("th",{scope:"row"},"a bundle's folder"),k$2("td",null,"what ",k$2("code",null,"aver export --out DIR")," and agent-capsule write: ",k$2("code",null,"index.json")," and one file per chain")),k$2("tr",null,k$2("th",{scope:"row"},"one chain"),k$2("td",null,"a file of such a folder")),k$2("tr",null,k$2("th",{scope:"row"},"capsules"),k$2("td",null,"one, an array, or one on each line, as JSON")),k$2("tr",null,k$2("th",{scope:"row"},"a sealed run"),k$2("td",null,k$2("code",null,".cap")," of Aver and of CapSeal, ",k$2("code",null,"actions.jsonl"),", a proof that a run has an action")),k$2("tr",null,k$2("th",{scope:"row"},"a report"),k$2("td",null,"the page that ",k$2("code",null,"aver report")," writes, with the records inside")),k$2("tr",null,k$2("th",{scope:"row"},"anything else"),k$2("td",null,"a ledger, a database, a checkpoint, an act: ",k$2("code",null,"aver verify FILE"))))))
}
var SESSIONS_MAX=5e3
var DAYS$1=60
async function ask(api,path,name) {
try {
const answer=await api.json(path)
const list=answer?.[name]
if (Array.isArray(list)&&list.every(one=>typeof one==="object"&&one)&&answer?.indexed) return answer
throw new ApiError(200,"NOT_JSON","the server's answer has another form than it should","Start it again: aver serve")
} catch (error) {
if (error instanceof ApiError&&[404,503].includes(error.status)) return null
throw error
}
}
async function askSessions(api) {
const sessions=[]
for (let after=null;;) {
const page=await ask(api,`sessions${query({limit:500,after})}`,"sessions")
if (page===null) return null
sessions.push(...page.sessions)
after=page.sessions.length?page.next:null
if (after===null||sessions.length>=5e3) return {sessions,indexed:page.indexed,isCut:after!==null}
}
}
async function askHits(api,words,limit) {
return ask(api,`search${query({query:words,limit:Math.min(limit,500)})}`,"hits")
}
async function askActivity(api) {
const page=await ask(api,`counts${query({by:"day",limit:DAYS$1})}`,"counts")
if (page===null) return null
return {days:page.counts.map(({start,records,tokens_in,tokens_out,cost_usd,outcomes,held})=>{
const sum=name=>Object.values(outcomes).reduce((total,kinds)=>total+(kinds[name]??0),0)
return {day:start,records,success:sum("success"),failure:sum("failure"),blocked:held,tokens:tokens_in+tokens_out,cost:cost_usd}
}).reverse(),held:page.held,indexed:page.indexed}
}
async function findRecords(words,limit) {
const nothing={hits:[],searched:0,isCut:false,by:"records",behind:0,shortened:0,ignored:[]}
if (!words) return nothing
nothing.ignored=parseQuery(words).ignored
const answer=server.value===null?null:await askHits(server.value.api,words,limit)
if (answer===null) {
const found=await connection.ask({type:"search",words,limit})
return {...nothing,searched:found.searched,isCut:found.isCut,hits:found.hits.map(({chain,row,excerpt})=>({chain,place:row.place,sequence:row.sequence||String(row.place),title:row.summary,excerpt,kind:row.kind,tool:row.tool,at:row.at}))}
}
const {hits,next,indexed}=answer
return {...nothing,searched:indexed.records,isCut:next!==null,by:"index",behind:Math.max(0,indexed.of_records-indexed.records),shortened:indexed.cut??0,hits:hits.map(({chain,sequence,at,call,kind,tool})=>({chain,place:sequence,sequence:String(sequence),title:"",excerpt:null,kind,tool:call||tool,at}))}
}
async function readRow(chain,place) {
return (await connection.ask({type:"rows",chain,start:place,stop:place+1}).catch(()=>null))?.rows[0]??null
}
var reading=Promise.resolve(null)
function readHit(chain,place,words,isCurrent) {
reading=reading.then(()=>isCurrent()?connection.ask({type:"hit",chain,place,words}).catch(()=>null):null)
return reading
}
var sessionRows=y$1(null)
var indexed=y$1(null)
var areCut=y$1(false)
var sessionsProblem=y$1("")
var tried=y$1(0)
function readSessionsAgain() {
tried.value++
}
var readFor=null
var groups=new Map()
var counted=new Map()
var lengths=new Map()
var wanted=[]
var isCounting=false
var DRAWN_EVERY=200
function isUncounted(chain) {
return indexed.value===null&&counted.get(chain)?.length!==lengths.get(chain)
}
function useSessions(choose) {
const listed=contents.value
A$1(()=>{
if (listed===null) return
if (readFor!==thing.value) {
sessionRows.value=null;
[groups,lengths]=[new Map(),new Map()]
counted.clear()
}
readFor=thing.value
sessionsProblem.value=""
readSessions().then(()=>{
sessionsProblem.value=""
},error=>{
sessionsProblem.value=error.message
})
},[listed,server.value===null?0:news.value.index,tried.value])
A$1(()=>{
wanted=choose(sessionRows.value??[])
countWanted()
})
A$1(()=>()=>{
wanted=[]
},[])
}
async function countWanted() {
if (isCounting) return
isCounting=true
let drawn=performance.now()
for (let chain=wanted.find(isUncounted); chain!==void 0; chain=wanted.find(isUncounted)) {
const [group,length,open]=[groups.get(chain),lengths.get(chain)??0,readFor]
if (group===void 0) break
const figures=await connection.ask({type:"figures",session:group}).then(fromRecords,()=>null)
if (open!==readFor) continue
counted.set(chain,{length,figures:figures??counted.get(chain)?.figures??null})
if (performance.now()-drawn<DRAWN_EVERY&&wanted.some(isUncounted)) continue
drawn=performance.now()
sessionRows.value=listRows()
}
isCounting=false
}
async function readSessions() {
const answer=server.value===null?null:await askSessions(server.value.api)
if (answer!==null) {
indexed.value=answer.indexed
areCut.value=answer.isCut
sessionRows.value=answer.sessions.map(session=>({tool:session.tool,session:session.session,chain:session.name,chains:findByName(session.name,session.session),figures:fromIndex(session),claimed:""}))
return
}
const found=await connection.ask({type:"sessions"})
const sizes=new Map((contents.value?.chains??[]).map(chain=>[chain.id,chain.length??0]));
[indexed.value,areCut.value]=[null,false]
groups=new Map(orderByTime(found).map(group=>[mainChain(group),group]))
lengths=new Map([...groups].map(([chain,group])=>[chain,chainNames(group).reduce((sum,name)=>sum+(sizes.get(name)??0),0)]))
sessionRows.value=listRows()
}
function findByName(chain,session) {
return (contents.value?.chains??[]).map(({id})=>id).filter(name=>name===chain||name.startsWith(`${chain}.`)||name===`gate.${session}`)
}
function listRows() {
const starts=new Map((contents.value?.chains??[]).map(chain=>[chain.id,chain.startedAt]))
return [...groups].map(([chain,group])=>({tool:group.tool,session:group.session,chain,chains:chainNames(group),figures:counted.get(chain)?.figures??null,claimed:starts.get(chain)??""}))
}
function fromRecords({title,started,ended,actions,edits,denials,tokensIn,tokensOut,costUsd,risk,workspace}) {
return {title,started,ended,actions,edits,denials,tokens:addTokens(tokensIn,tokensOut),costUsd,risk,workspace}
}
function fromIndex({title,started,ended,actions,edits,denials,tokens_in,tokens_out,cost_usd,highest_risk,workspace}) {
return {title,started,ended,actions,edits,denials,tokens:addTokens(tokens_in,tokens_out),costUsd:cost_usd,risk:highest_risk,workspace}
}
function addTokens(one,other) {
return one===null&&other===null?null:(one??0)+(other??0)
}
function mainChain(session) {
return session.main??session.agents[0]?.[1]??session.decisions??""
}
function orderByTime(found) {
const ends=new Map((contents.value?.chains??[]).map(chain=>[chain.id,chain.endedAt]))
const end=session=>ends.get(mainChain(session))??""
return [...found].sort((one,other)=>end(one)<end(other)?1:-1)
}
var SHOWN_MAX=50
var figure=value=>value===void 0||value===null?"–":count(value)
var COLUMNS=[{name:"start",words:"Start",value:row=>row.figures?.started??row.claimed,show:row=>k$2(Time,{brief:true},row.figures?.started??"")},{name:"actions",words:"Actions",isNumber:true,value:row=>row.figures?.actions??-1,show:row=>figure(row.figures?.actions)},{name:"edits",words:"Edits",isNumber:true,value:row=>row.figures?.edits??-1,show:row=>figure(row.figures?.edits)},{name:"tokens",words:"Tokens",isNumber:true,value:row=>row.figures?.tokens??-1,show:row=>figure(row.figures?.tokens)},{name:"cost",words:"Cost",isNumber:true,value:row=>row.figures?.costUsd??-1,show:row=>row.figures?.costUsd==null?"–":formatMoney(row.figures.costUsd)},{name:"denials",words:"Denials",isNumber:true,value:row=>row.figures?.denials??-1,show:row=>row.figures?.denials?k$2("strong",{class:"bad"},count(row.figures.denials)):figure(row.figures?.denials)},{name:"risk",words:"Risk",isNumber:true,value:row=>row.figures?.risk??-1,show:row=>row.figures?.risk==null?"–":row.figures.risk.toFixed(2)}]
function PhoneFacts({row:{tool,figures}}) {
return k$2("p",{class:"beside tight on-phone"},k$2(Text,null,tool),figures?.started?k$2($,null," · ",k$2(Time,{brief:true},figures.started)):null,figures?k$2($,null," · ",plural(figures.actions,"action")):null,figures?.denials?k$2($,null," · ",k$2("strong",{class:"bad"},plural(figures.denials,"denial"))):null)
}
function SessionTable({rows,sorted,onSort}) {
const box=T(null)
useRowKeys(box)
const head=(name,words,isNumber=false)=>k$2("th",{scope:"col",class:`${isNumber?"number ":""}at-${name}`,"aria-sort":sorted?.replace("-","")===name?sorted.startsWith("-")?"descending":"ascending":void 0},onSort?k$2("button",{type:"button",class:"sort-by",onClick:()=>onSort(name)},words,k$2("span",{"aria-hidden":"true"},sorted===name?" ↑":sorted===`-${name}`?" ↓":"")):words)
return k$2("div",{class:"scroll",ref:box,tabIndex:0,role:"region","aria-label":"Sessions"},k$2("table",{class:"chains sessions"},k$2("thead",null,k$2("tr",null,k$2("th",{scope:"col"},"State"),head("title","Title"),k$2("th",{scope:"col",class:"at-tool"},"Tool"),COLUMNS.map(({name,words,isNumber=false})=>head(name,words,isNumber)))),k$2("tbody",null,rows.map((row,at)=>k$2("tr",{key:row.chain},k$2("td",{class:"state"},k$2(SessionMark,{chains:row.chains})),k$2("td",{class:"title"},k$2("a",{"data-row":true,tabIndex:at===0?0:-1,href:link("s",row.chain)},k$2(Text,null,row.figures?.title||row.session)),k$2(PhoneFacts,{row})),k$2("td",{class:"at-tool"},k$2(Text,null,row.tool)),COLUMNS.map(({name,show,isNumber})=>k$2("td",{key:name,class:`${isNumber?"number ":""}at-${name}`},row.figures!==null?show(row):isUncounted(row.chain)?"…":"–")))))))
}
function FiguresNote() {
const {complete=true,records=0,of_records=0}=indexed.value??{}
return k$2("p",{class:"beside"},indexed.value?`The figures are from the server's index, which proves nothing; a session's own page counts them anew from its records.${complete?"":` The index has read ${count(records)} of ${count(of_records)} records.`}`:"The figures are counted from the records, as aver sessions counts them."," A dash: the records do not say.")
}
function order(rows,sorted) {
const isDown=sorted.startsWith("-")
const name=sorted.replace("-","")
const value=name==="title"?row=>(row.figures?.title??"").toLowerCase():COLUMNS.find(column=>column.name===name)?.value
if (value===void 0) return rows
const isUnknown=row=>row.figures===null&&(name!=="start"||!row.claimed)
return [...rows].sort((one,other)=>{
const [a,b]=[value(one),value(other)]
return Number(isUnknown(one))-Number(isUnknown(other))||(a<b?-1:a>b?1:0)*(isDown?-1:1)
})
}
function SessionsView(_) {
const [wanted,setWanted]=d$2("")
const [tool,setTool]=d$2("")
const [since,setSince]=d$2("")
const [until,setUntil]=d$2("")
const [sorted,setSorted]=d$2("-start")
const [isByWorkspace,setByWorkspace]=d$2(false)
const [shown,setShown]=d$2(SHOWN_MAX)
const words=wanted.trim()
const all=sessionRows.value??[]
const tools=[...new Set(all.map(({tool:name})=>name))].sort()
const ofTool=all.filter(({tool:name})=>!tool||name===tool)
const found=ofTool.filter(({session,figures})=>{
const started=readTime(figures?.started??"").slice(0,10)
return (!since||started>=since)&&(!until||started&&started<=until)&&`${session} ${figures?.title??""} ${figures?.workspace??""}`.toLowerCase().includes(words.toLowerCase())
})
const listed=order(found,sorted).slice(0,shown)
const needsAll=Boolean(wanted||since||until||sorted.replace("-","")!=="start"||ofTool.some(({claimed})=>!claimed))
const counting=[...listed,...needsAll?ofTool:[]].map(({chain})=>chain)
useSessions(()=>counting)
const left=needsAll?ofTool.filter(({chain})=>isUncounted(chain)).length:0
const groups=new Map()
if (isByWorkspace) for (const row of listed) groups.set(row.figures?.workspace||"no workspace named",[...groups.get(row.figures?.workspace||"no workspace named")??[],row])
const onSort=name=>setSorted(sorted===`-${name}`?name:`-${name}`)
return k$2($,null,k$2("h1",null,"Sessions"),k$2("form",{class:"filters",onSubmit:event=>{
event.preventDefault()
if (words) location.hash=searchLink(words)
}},k$2("label",null,"Filter ",k$2("input",{type:"search",value:wanted,onInput:event=>setWanted(event.currentTarget.value),placeholder:"title, id or workspace"})),k$2("label",null,"Tool ",k$2("select",{value:tool,onChange:event=>setTool(event.currentTarget.value)},k$2("option",{value:""},"all"),tools.map(name=>k$2("option",{key:name,value:name},visible(name))))),k$2("label",null,"From ",k$2("input",{type:"date",value:since,onInput:event=>setSince(event.currentTarget.value)})),k$2("label",null,"to ",k$2("input",{type:"date",value:until,onInput:event=>setUntil(event.currentTarget.value)})),k$2("label",{class:"choice"},k$2("input",{type:"checkbox",checked:isByWorkspace,onChange:event=>setByWorkspace(event.currentTarget.checked)})," by workspace"),k$2("span",{class:"beside",role:"status","aria-busy":left>0},sessionRows.value===null?"":`${count(found.length)} of ${count(all.length)}${left?` so far: counting, ${plural(left,"session")} to go`:""}`),words?k$2("button",{type:"submit",class:"small"},"Search all text for it (Enter)"):null),sessionsProblem.value?k$2(Problem,{words:sessionsProblem.value,retry:readSessionsAgain}):null,sessionRows.value===null&&!sessionsProblem.value?k$2(Loading,{rows:10,words:"Reading the sessions"}):null,sessionRows.value!==null&&!all.length?k$2(Empty,{command:"aver ingest --all"},"There is no session of a coding agent in it. This records those that are on your machine; ",k$2("code",null,"aver install")," records the next ones as they happen."):null,all.length&&!found.length?left?k$2(Loading,{rows:10,words:"Counting the sessions"}):k$2(Empty,null,"No session fits this filter.",words?k$2($,null," It looks at titles, ids and workspaces. ",k$2("a",{href:searchLink(words)},"Search the text of all records for “",k$2(Text,null,words),"”")," (Enter)."):null):null,areCut.value?k$2("p",{class:"strip"},"Only the ",count(SESSIONS_MAX)," latest sessions are listed. ",k$2("code",null,"aver sessions")," lists all."):null,listed.length&&!isByWorkspace?k$2(SessionTable,{rows:listed,sorted,onSort}):null,[...groups].map(([workspace,rows])=>k$2("section",{key:workspace},k$2("h2",null,k$2(Text,null,workspace)),k$2(SessionTable,{rows,sorted,onSort}))),found.length>shown?k$2("p",null,k$2("button",{type:"button",onClick:()=>setShown(shown+SHOWN_MAX)},"Show ",SHOWN_MAX," more")):null,all.length?k$2(FiguresNote,null):null)
}
var HEIGHT$1=72
var WIDTH$1=480
function DayChart({title,days,series,show}) {
const sums=days.map((_,at)=>series.reduce((sum,one)=>sum+(one.values[at]??0),0))
const most=Math.max(...sums,0)
const step=WIDTH$1/Math.max(days.length,1)
const total=sums.reduce((sum,value)=>sum+value,0)
return k$2("figure",{class:"chart"},k$2("figcaption",null,k$2("strong",null,title)," ",k$2("span",{class:"figure"},show(total))),k$2("svg",{viewBox:`0 0 ${WIDTH$1} 74`,preserveAspectRatio:"none","aria-hidden":"true"},k$2("line",{x1:"0",x2:WIDTH$1,y1:73,y2:73,class:"base"}),days.map((day,at)=>{
let bottom=HEIGHT$1
return series.map(one=>{
const value=one.values[at]??0
const height=most?Math.max(value/most*HEIGHT$1,value?1.5:0):0
bottom-=height
return height?k$2("rect",{key:`${day} ${one.name}`,x:at*step+step*.12,width:step*.76,y:bottom,height,class:one.colour}):null
})
})),k$2("div",{class:"axis beside","aria-hidden":"true"},k$2("span",null,days[0]??""),k$2("span",null,days.length>1?days.at(-1):"")),series.length>1?k$2("p",{class:"legend"},series.map(one=>k$2("span",{key:one.name},k$2("span",{class:`swatch ${one.colour}`,"aria-hidden":"true"}),one.name," ",show(one.values.reduce((sum,value)=>sum+value,0))))):null,k$2("details",null,k$2("summary",null,"As a table"),k$2(Table,{label:`${title} as a table`,heads:["Day",...series.map(({name})=>name)]},days.map((day,at)=>k$2("tr",{key:day},k$2("th",{scope:"row"},k$2(Text,null,day)),series.map(one=>k$2("td",{key:one.name,class:"number"},show(one.values[at]??0))))))))
}
function deedWords({tool,summary,kind}) {
const words=summary.replace(/^(skip|human_review|pass|human_approved): /,"")
return tool&&!words.startsWith(tool)?`${tool}: ${words}`:words||kind
}
function Refused({denials}) {
return k$2("section",null,k$2("h2",null,"Refused last"),denials.length?k$2("ul",{class:"hits"},denials.map(({chain,row})=>k$2("li",{key:`${chain}/${row.place}`},k$2("a",{href:recordLink(chain,row)},k$2("span",null,k$2("span",{class:"word failure"},row.status==="pending"?"not approved":"denied")," ",k$2(Text,null,deedWords(row))),k$2("span",{class:"beside"},k$2(Time,null,row.at)," · ",k$2(Text,null,chain)))))):k$2("p",{class:"soft"},"Nothing was refused."))
}
var BY_INDEX="by the index, not proved"
function Tile({title,state="",children,beside,more}) {
return k$2("div",{class:`tile ${state}`},k$2("dt",null,title),k$2("dd",null,k$2("p",{class:"answer"},children),k$2("p",{class:"beside"},beside),more))
}
function reachOf(verdict) {
const {status,first_bad,checks}=verdict
if (status==="failed") return first_bad===null?"a check failed":`${first_bad.code} at ${describePlace(first_bad.place)}`
if (status==="empty") return "no record was read"
const extent=extentOf(verdict)
const unmade=checks.filter(check=>check.status==="not_checked"&&check.matters).length
return status==="verified"?`${extent} hold`:`Nothing failed in ${extent}; ${unmade?`${plural(unmade,"check")} not made`:"there is a warning"}`
}
function FailedAudits({audits}) {
const [first]=audits
if (first===void 0) return null
return k$2("p",{class:"beside audits"},k$2("strong",{class:"bad"},plural(audits.length,"audit")," failed"),": ",k$2("a",{href:link("protocol",first.chain)},k$2(Text,null,first.chain)),audits.length>1?k$2($,null,", and ",count(audits.length-1)," more"):null,". That is an auditor's word on the work, apart from whether the records are intact.")
}
function Intact({audits}) {
const now=judgement.value
if (now.state==="working") return k$2(Tile,{title:"Is it intact?",beside:"Every hash and signature is computed here"},k$2(Mark,{name:"working"})," Verifying")
if (now.state!=="done") return k$2(Tile,{title:"Is it intact?",beside:"Nothing is called verified before it is"},k$2(Mark,{name:"not judged"})," Not judged")
const {status}=now.verdict
return k$2(Tile,{title:"Is it intact?",state:status,beside:k$2(Text,null,reachOf(now.verdict)),more:k$2(FailedAudits,{audits})},k$2(Mark,{name:status})," ",status[0]?.toUpperCase(),status.slice(1))
}
function RefusedTile({refusals}) {
const title="What was refused?"
if (refusals==="loading") return k$2(Tile,{title,beside:"…"},"…")
if (refusals==="not counted") return k$2(Tile,{title,beside:k$2("a",{href:link("risk")},"see the decisions")},"Not counted")
const {last}=refusals
return k$2(Tile,{title,beside:k$2($,null,last?k$2($,null,"last: ",k$2("a",{href:recordLink(last.chain,last.row)},k$2(Text,null,deedWords(last.row)))):"nobody and no rule held anything back",refusals.isByIndex?` · number ${BY_INDEX}`:null)},refusals.count?`${count(refusals.count)} held back`:"Nothing")
}
function Glance({last,isByIndex,isCounted,refusals,audits}) {
const wait=waiting.value
const isUnknown=!wait&&casesProblem.value!==""
return k$2("dl",{class:"glance"},k$2(Intact,{audits}),k$2(Tile,{title:"Does something wait for me?",state:wait?"qualified":"",beside:wait?"denied, if nobody answers in time":isUnknown?"the requests cannot be read":"no request for an approval is open"},wait||isUnknown?k$2("a",{href:link("approvals")},isUnknown?"Not known":plural(wait,"approval")):"Nothing"),k$2(Tile,{title:"What happened last?",beside:last?k$2($,null,k$2(Text,null,last.chain)," · ",k$2(Time,{brief:true},last.row.at),isByIndex?` · ${BY_INDEX}`:null):isCounted?k$2("a",{href:link("chains")},"see the chains"):"…"},last?k$2("a",{href:recordLink(last.chain,last.row)},k$2(Text,null,deedWords(last.row))):isCounted?refusals==="not counted"?"Not counted":"Nothing":"…"),k$2(RefusedTile,{refusals}))
}
var LATEST=6
var NEWEST=16
var DEEDS=["call","turn","gate.decision","gate.outcome","approval","action","act","protocol","audit","delegation"].map(kind=>`kind:${kind}`).join(" ")
var AUDITS$1=20
var COUNTED_SESSIONS=200
var COUNTED_MAX=5e4
function Waiting() {
const open=(cases.value??[]).filter(one=>stateOf(one)==="pending")
if (!open.length) return null
return k$2("section",{class:"waiting"},k$2("h2",null,plural(open.length,"approval")," ",open.length===1?"waits":"wait"," for an answer"),k$2("div",{class:"cases"},open.slice(0,3).map(one=>k$2(CaseLine,{key:one.id,one,isFirst:true}))),open.length>3?k$2("p",null,k$2("a",{href:link("approvals")},"All of them")):null)
}
var DAYS=60
var DAY_MS=864e5
function fillDays(all) {
const last=all.at(-1)
if (last===void 0) return []
const found=all.filter(({day})=>Date.parse(last.day)-Date.parse(day)<DAYS*DAY_MS)
const byDay=new Map(found.map(day=>[day.day,day]))
const days=[]
const end=Date.parse(`${last.day}T00:00:00Z`)
for (let at=Math.min(Date.parse(`${found[0]?.day}T00:00:00Z`),end-13*DAY_MS); at<=end; at+=DAY_MS) {
const day=new Date(at).toISOString().slice(0,10)
days.push(byDay.get(day)??{day,records:0,success:0,failure:0,blocked:0,tokens:0,cost:0})
}
return days
}
function Charts({days,from}) {
if (!days.length) return null
const names=days.map(day=>day.day)
const of=name=>days.map(day=>day[name])
return k$2("section",null,k$2("h2",null,"Activity ",k$2("span",{class:"soft"},"since ",names[0])),k$2("div",{class:"charts"},k$2(DayChart,{title:"Records",days:names,show:count,series:[{name:"records",colour:"ink",values:of("records")}]}),k$2(DayChart,{title:"Outcomes",days:names,show:count,series:[{name:"success",colour:"good",values:of("success")},{name:"failure",colour:"warn",values:of("failure")},{name:"denied",colour:"bad",values:of("blocked")}]}),k$2(DayChart,{title:"Denials",days:names,show:count,series:[{name:"denied",colour:"bad",values:of("blocked")}]}),k$2(DayChart,{title:"Tokens",days:names,show:count,series:[{name:"tokens",colour:"ink",values:of("tokens")}]}),k$2(DayChart,{title:"Cost",days:names,show:formatMoney,series:[{name:"cost",colour:"ink",values:of("cost")}]})),k$2("p",{class:"beside"},"Days are those of UTC. ",from))
}
async function readRows(hits) {
return (await Promise.all(hits.map(async ({chain,sequence})=>({chain,row:await readRow(chain,sequence)})))).flatMap(({chain,row})=>row===null?[]:[{chain,row}])
}
async function readActivity() {
const api=server.value?.api
const answer=api===void 0?null:await askActivity(api)
if (api===void 0||answer===null) {
if (totalRecords.value>COUNTED_MAX) return null
await waitForTurn()
const found=await connection.ask({type:"activity"})
return {...found,isByIndex:false,from:`Counted here from ${plural(found.records,"record")}${found.isCut?"; there are more":""}. The verdict says whether they hold.`}
}
const [newest,failed]=await Promise.all([askHits(api,DEEDS,NEWEST),askHits(api,`kind:${AUDIT_KIND} outcome:failure`,AUDITS$1)])
const [denials,audits,deeds]=await Promise.all([readRows(answer.held),readRows(failed?.hits??[]),readRows(newest?.hits??[])])
const behind=answer.indexed.of_records-answer.indexed.records
return {days:answer.days,isByIndex:true,denials:denials.filter(({row})=>row.status==="blocked"||row.status==="pending"),last:deeds.sort((one,other)=>Date.parse(other.row.at)-Date.parse(one.row.at))[0]??null,audits:audits.filter(({row})=>row.kind==="protocol.verification_run_completed"&&row.status==="failure"),from:`From the server's index, which proves nothing${behind>0?` and lacks ${plural(behind,"record")} yet`:""}. The refusals are read from their records.`}
}
function latestSessions() {
const rows=sessionRows.value??[]
const end=row=>row.figures?.ended??""
return (rows.some(row=>row.figures)?[...rows].sort((one,other)=>end(one)<end(other)?1:-1):rows).slice(0,LATEST)
}
function OverviewView(_) {
useSessions(all=>all.slice(0,contents.value?.format==="ledger"?COUNTED_SESSIONS:LATEST).map(({chain})=>chain))
const whole=contents.value
const isSmall=totalRecords.value<=COUNTED_MAX
const activity=useAnswer(readActivity,[whole?.ledger,whole?.name,isSmall,changed.value,news.value.index])
useKeys({b:()=>{
const target=verdict.value?.first_bad?placeLink(verdict.value.first_bad.place):null
if (target!==null) location.hash=target
}})
if (whole===null) return k$2("p",{class:"strip"},"Nothing is open.")
if (cases.value===null&&!casesProblem.value) return k$2("div",{"aria-busy":"true"},k$2("h1",null,k$2(Text,null,whole.name)),k$2("div",{class:"band placeholder tall"}))
const rows=latestSessions()
const counted=activity.value
const refusals=counted?{count:counted.days.reduce((sum,day)=>sum+day.blocked,0),last:counted.denials[0],isByIndex:counted.isByIndex}:activity.state==="loading"?"loading":"not counted"
return k$2($,null,k$2("h1",null,k$2(Text,null,whole.name)),k$2(Glance,{last:counted?.last??null,isByIndex:counted?.isByIndex??false,isCounted:activity.state!=="loading",refusals,audits:counted?.audits??[]}),k$2(Waiting,null),k$2(VerdictBand,null),k$2("section",null,k$2("h2",null,"Latest sessions"),sessionsProblem.value?k$2(Problem,{words:sessionsProblem.value,retry:readSessionsAgain}):null,sessionRows.value===null&&!sessionsProblem.value?k$2(Loading,{rows:LATEST,words:"Reading the sessions"}):null,rows.length?k$2($,null,k$2(SessionTable,{rows}),k$2(FiguresNote,null)):null,sessionRows.value!==null&&!rows.length?k$2(Empty,{command:"aver ingest --all"},totalRecords.value?k$2($,null,"No session of a coding agent is in it. ",k$2("a",{href:link("chains")},"Its chains")," have what was recorded otherwise."):"Nothing is recorded here yet. This records the sessions of coding agents on your machine:"):null,(sessionRows.value?.length??0)>LATEST?k$2("p",{class:"all"},k$2("a",{href:link("sessions")},"All ",count(sessionRows.value?.length??0)," sessions")):null),activity.state==="failed"?k$2(Problem,{words:activity.words,retry:activity.retry}):null,activity.state==="loading"?k$2(Loading,{rows:6,words:"Counting the activity"}):null,activity.value?k$2(Refused,{denials:activity.value.denials}):null,activity.value?k$2(Charts,{days:fillDays(activity.value.days),from:activity.value.from}):null,activity.state==="done"&&activity.value===null?k$2("p",{class:"strip"},"There are more than ",count(COUNTED_MAX)," records: the page does not count their activity. ",k$2("code",null,"aver sessions")," does."):null)
}
var ROLES=["operator","planner","executor","critic","auditor"]
function readTrace(records) {
const trace={task:new Map(),profile:"",state:"",events:[],participants:[],claims:[],audit:null}
let place=-1
for (const record of records) {
place++
const event=record instanceof BadInput?null:readEvent(record,place)
if (event===null) continue
trace.events.push(event)
trace.state=event.after||trace.state
takeUp(trace,event)
}
return trace
}
function readEvent(record,place) {
const content=contentOf(record)
if (content===null) return null
if (!readKind(content).startsWith("protocol.")) return null
const told=asObject(at(content,"context","environment","protocol"))
const refs=asObject(at(content,"context","environment","aver","refs"))
return {place,id:asText(content.get("id")),event:asText(told.get("event")),role:asText(told.get("role")),agent:asText(told.get("agent")),at:asText(at(content,"trigger","timestamp"))||record.signed_at,before:asText(told.get("before")),after:asText(told.get("after")),summary:asText(at(content,"outcome","summary")),refs:new Map([...refs].map(([name,value])=>[name,asText(value)])),payload:asObject(at(content,"outcome","result")),statements:asList(at(content,"authority","chain"))}
}
function takeUp(trace,event) {
const {payload,refs}=event
switch (event.event) {
case "session_initialized":
trace.task=asObject(payload.get("task"))
trace.profile=asText(payload.get("profile"))
trace.participants.push(...asList(payload.get("participants")).map(readParticipant))
break
case "participant_joined":
trace.participants.push(readParticipant(payload.get("participant")??null))
break
case "claim_issued":
trace.claims.push({id:event.id,place:event.place,agent:event.agent,...wording(payload),about:asText(payload.get("about")),standing:"issued",earlier:[],challenges:[]})
break
case "claim_challenged":
challenge(trace.claims.find(claim=>claim.id===refs.get("claim")),event)
break
case "claim_revised":
revise(trace.claims.find(claim=>claim.id===refs.get("claim")),event)
break
case "challenge_resolved":
resolve(trace.claims.find(claim=>claim.challenges.some(one=>one.id===refs.get("challenge"))),event)
break
case "verification_run_completed":trace.audit=event
}
}
function readParticipant(value) {
const given=asObject(value)
return {agent:asText(given.get("agent")),role:asText(given.get("role")),key:asText(given.get("public_key")),held:asText(given.get("held"))}
}
function wording(payload) {
const confidence=payload.get("confidence")
return {text:asText(payload.get("text")),confidence:confidence instanceof JsonNumber?confidence.text:"",evidence:asList(payload.get("evidence"))}
}
function hasOpenChallenge(claim) {
return claim.challenges.some(one=>one.standing==="open")
}
function challenge(claim,{id,place,agent,payload}) {
if (claim===void 0) return
claim.challenges.push({id,place,agent,reason:asText(payload.get("reason")),evidence:asList(payload.get("evidence")),standing:"open",rationale:""})
claim.standing="disputed"
}
function revise(claim,{place,payload}) {
if (claim===void 0) return
claim.earlier.push({text:claim.text,place:claim.place})
if (isTruthy(payload.get("retracted"))) {
claim.standing="retracted"
for (const one of claim.challenges) if (one.standing==="open") one.standing="moot"
return
}
Object.assign(claim,wording(payload),{place})
claim.standing=hasOpenChallenge(claim)?"disputed":"issued"
}
function resolve(claim,{refs,payload}) {
const found=claim?.challenges.find(one=>one.id===refs.get("challenge"))
if (claim===void 0||found===void 0) return
found.standing=asText(payload.get("outcome"))
found.rationale=asText(payload.get("rationale"))
if (found.standing==="upheld") claim.standing="refuted"
else if (claim.standing!=="refuted") claim.standing=hasOpenChallenge(claim)?"disputed":"settled"
}
function describeCheck(check) {
const [entry]=[...asObject(check)]
if (entry===void 0) return "the artifact is here"
const [name,value]=entry
const scalar=(one=null)=>one===null?"":plainJson(one)
const compare=one=>asList(one).map(part=>typeof part==="string"&&/^[=!<>]+$/.test(part)?part:scalar(part)).join(" ")
if (name==="exit_code") return `exit code ${compare(value)}`
if (name==="sha256") return `SHA-256 is ${asText(value).slice(0,16)}…`
if (name==="json") return `JSON at ${asText(at(value,"pointer"))||"/"} ${compare(at(value,"is"))}`
if (name==="tests") return [...asObject(at(value,"counts"))].map(([count,is])=>`${count} ${compare(is)}`).join(", ")+` (${asText(at(value,"format"))})`
if (name==="text") return [...asObject(value)].map(([word,is])=>`text ${word} ${Array.isArray(is)?compare(is):scalar(is)}`).join(", ")
if (name==="git") return `git revision ${asText(at(value,"revision")).slice(0,12)}, ${at(value,"clean")===true?"clean":"not clean"}`
return `${name} (a check that this page does not know)`
}
var READ_MAX$1=1e4
var EVENTS_SHOWN=200
function ProtocolView({parts:[wanted=""]}) {
return k$2(OfDomain,{domain:"protocol",title:"Protocol",route:"protocol",wanted,what:"trace",empty:["There is no trace of the agent protocol in these records. This makes one:","aver protocol run TASK.toml"]},chain=>k$2(ReadChain,{key:chain,chain,most:READ_MAX$1,command:`aver show ${chain} --html trace.html`,read:async records=>{
const trace=readTrace(records)
return {trace,report:await readReport(trace)}
}},({trace,report})=>k$2(TraceOfChain,{chain,trace,report})))
}
function TraceOfChain({chain,trace,report}) {
return k$2($,null,k$2("p",{class:"sentence"},k$2(Text,null,asText(trace.task.get("objective"))||chain)),k$2("p",{class:"beside"},k$2("a",{href:link("chain",chain)},k$2(Text,null,chain))," · ",plural(trace.events.length,"event")," · state ",k$2("strong",null,k$2(Text,null,trace.state))," · profile ",k$2(Text,null,trace.profile)),k$2(Audit,{trace,report,chain}),k$2("h2",null,"Claims"),trace.claims.length?trace.claims.map(claim=>k$2(Claim,{key:claim.id,claim,chain,report,trace})):k$2("p",{class:"strip"},"Nothing is claimed yet."),k$2("h2",null,"Events by role"),k$2(Lanes,{trace,chain}),k$2("h2",null,"Participants"),k$2(Table,{label:"Participants",heads:["Agent","Role","Key","Held"]},trace.participants.map((one,place)=>k$2("tr",{key:place},k$2("th",{scope:"row"},k$2(Text,null,one.agent)),k$2("td",null,k$2(Text,null,one.role)),k$2("td",null,k$2(Hex,null,one.key)),k$2("td",null,k$2(Text,null,one.held))))))
}
async function readReport(trace) {
const digest=asText(at(trace.audit?.payload,"report","blob","digest"))
const data=digest?await readBlob(digest):null
try {
const report=data===null?null:readJson(data)
return isObject(report??void 0)?report:null
} catch (error) {
if (error instanceof BadInput) return null
throw error
}
}
var AUDITS={pass:["verified","The auditor found that everything holds."],"pass-with-warnings":["qualified","The auditor found no failure, and has warnings."],fail:["failed","The auditor found that it does not hold."]}
function Audit({trace,report,chain}) {
const {audit}=trace
if (audit===null) return k$2("p",{class:"strip"},"No audit is sealed in this trace. The auditor makes one: ",k$2(Command,null,`aver protocol audit ${chain.replace(/^protocol\./,"")}`))
const status=asText(audit.payload.get("status"))
const [mark,words]=lookUp(AUDITS,status)??["failed","The audit has a status that is not known."]
const findings=asList(report?.get("findings")??null).filter(isObject)
return k$2("section",{class:`band ${mark}`},k$2("h2",null,k$2(Mark,{name:mark})," Audit: ",k$2(Text,null,status)),k$2("p",null,words," By ",k$2(Text,null,audit.agent),", ",k$2(Time,null,audit.at),", in ",k$2("a",{href:link("c",chain,`p${audit.place}`)},"record ",audit.place),"."),k$2("p",{class:"beside"},"These are the auditor's words. The page checks the seals; whether the evidence holds is judged anew by ",k$2(Command,null,verifyCommand())),report===null?k$2("p",{class:"beside"},"The report itself is not here: its blob is missing, damaged or too large."):k$2("div",{class:"columns"},k$2("div",null,k$2("h3",null,"Checks"),k$2("table",{class:"checks"},k$2("tbody",null,asList(report.get("checks")).filter(isObject).map((check,place)=>k$2("tr",{key:place},k$2("th",{scope:"row"},k$2(Text,null,asText(check.get("name")))),k$2("td",null,k$2(Text,null,asText(check.get("status"))))))))),k$2("div",null,k$2("h3",null,"Findings"),findings.length?k$2("table",{class:"checks"},k$2("tbody",null,findings.map((finding,place)=>k$2(AuditFinding,{key:place,finding,trace,chain})))):k$2("p",null,"None."))),audit.statements.length?k$2("details",null,k$2("summary",null,"The auditor's signed statement"),k$2(Statements,{values:audit.statements})):null)
}
var FINDING_WORDS={CLAIM_UNPROVEN:"The evidence does not bear it out, or there is none.",CLAIM_DISPUTED:"A challenge to it is open, or a person upheld one.",NOT_REPRODUCED:"Repeating the execution gave another result.",NOT_INDEPENDENT:"Its key lies where the executor's key lies, so that whoever has one may have the other.",OUTCOME_UNKNOWN:"Nobody knows how the execution ended."}
function AuditFinding({finding,trace,chain}) {
const [code,subject,status]=["code","subject","status"].map(name=>asText(finding.get(name)))
const claim=trace.claims.find(one=>one.id===subject)
const event=trace.events.find(one=>one.id===subject)
const explained=adviceOn(code)
const sign=status==="failed"?"✕":status==="warning"?"!":"i"
return k$2("tr",null,k$2("th",{scope:"row"},k$2("span",{class:`check ${status}`,"aria-hidden":"true"},sign)," ",k$2(Text,null,code)),k$2("td",null,k$2("p",{class:"tight"},k$2(Text,null,status),", about ",claim?k$2($,null,"the claim “",k$2(Text,null,claim.text),"”"):event?k$2(Text,null,event.summary):subject?k$2("strong",null,k$2(Text,null,subject)):k$2(Text,null,asText(finding.get("check")))," · event ",k$2(SequenceLink,{chain,value:finding.get("sequence")??null})),k$2("p",{class:"soft tight"},code==="CLAIM_UNPROVEN"&&!claim?"What it expects is not met.":k$2($,null,lookUp(FINDING_WORDS,code)??explained?.meaning??""," ",status==="note"?"":explained?.advice??""))))
}
function SequenceLink({chain,value}) {
const text=value?.text??""
return text?k$2("a",{href:link("c",chain,text)},text):k$2($,null,"–")
}
var STANDINGS={issued:"nobody challenged it",disputed:"a challenge is open",settled:"every challenge was settled",refuted:"a person upheld a challenge",retracted:"it was taken back"}
function Claim({claim,chain,report,trace}) {
const judged=asList(report?.get("claims")??null).filter(isObject).find(one=>one.get("id")===claim.id)
const failing=asList(judged?.get("evidence")??null).filter(item=>at(item,"holds")!==true).length
const isStanding=claim.standing==="settled"||claim.standing==="issued"
const tone=failing||claim.standing==="refuted"||claim.standing==="retracted"?"bad":!isStanding||judged===void 0?"warn":"good"
return k$2("article",{class:`claim is-${tone}`},k$2("h3",null,k$2(Text,null,claim.text)),k$2("p",{class:"beside"},failing?k$2($,null,k$2("strong",{class:"bad"},"does not hold"),": by the audit, ",failing===1?"a piece":`${failing} pieces`," of its evidence ",failing===1?"does":"do"," not hold · "):null,k$2("strong",{class:failing?"":tone},k$2(Text,null,claim.standing)),": ",lookUp(STANDINGS,claim.standing)??"",judged===void 0?", and no audit has judged it":""," · about ",k$2(Text,null,claim.about||"an outcome")," · confidence ",k$2("span",{class:"figure"},claim.confidence||"–")," · ",k$2(Text,null,claim.agent)," · ",k$2("a",{href:link("c",chain,`p${claim.place}`)},"record ",claim.place)),claim.earlier.map((earlier,place)=>k$2("p",{key:place,class:"beside earlier"},"before: ",k$2("del",null,k$2(Text,null,earlier.text)))),k$2(Evidence,{items:claim.evidence,judged:asList(judged?.get("evidence")??null),chain,trace}),claim.challenges.map(challenge=>k$2("div",{key:challenge.id,class:"challenge"},k$2("p",null,k$2("strong",null,"Challenge")," by ",k$2(Text,null,challenge.agent),", ",k$2("strong",{class:challenge.standing==="open"?"warn":""},k$2(Text,null,challenge.standing))," · ",k$2("a",{href:link("c",chain,`p${challenge.place}`)},"record ",challenge.place)),k$2("p",null,k$2(Text,null,challenge.reason)),challenge.rationale?k$2("p",{class:"beside"},k$2(Text,null,challenge.rationale)):null,k$2(Evidence,{items:challenge.evidence,judged:[],chain,trace}))))
}
function Evidence({items,judged,chain,trace}) {
if (!items.length) return null
return k$2(Table,{of:"plain evidence",label:"Evidence",heads:["Evidence","From","By the audit"]},items.map((item,place)=>{
const start=trace.events.find(event=>event.id===at(item,"execution"))
const word=judged[place]
const holds=at(word,"holds")
return k$2("tr",{key:place},k$2("td",null,k$2(Text,null,describeCheck(at(item,"check")))),k$2("td",null,start?k$2("a",{href:link("c",chain,`p${start.place}`)},"execution ",start.place):null," ",asText(at(item,"artifact"))?k$2(Hex,null,asText(at(item,"artifact"))):null),k$2("td",null,word===void 0?"–":holds===true?k$2("span",{class:"good"},"✓ holds"):k$2($,null,k$2("span",{class:"bad"},"✕ does not hold")," ",k$2(Text,null,asText(at(word,"reason")))),word!==void 0&&at(word,"found")!==void 0?k$2("span",{class:"beside"}," found ",k$2(Text,null,foundText(at(word,"found")))):null))
}))
}
function foundText(value) {
return isObject(value)?[...value].map(([name,item])=>`${name} ${valueText(item)}`).join(", "):valueText(value)
}
function Lanes({trace,chain}) {
const [shown,setShown]=d$2(EVENTS_SHOWN)
const roles=ROLES.filter(role=>trace.events.some(event=>event.role===role))
return k$2($,null,k$2(Table,{of:"lanes",heads:["Event",...roles]},trace.events.slice(0,shown).map(event=>k$2("tr",{key:event.place,class:event.before!==event.after?"turn":""},k$2("th",{scope:"row"},k$2("a",{href:link("c",chain,`p${event.place}`)},event.place)," ",k$2("span",{class:"beside"},k$2(Time,{short:true},event.at))),roles.map(role=>k$2("td",{key:role,"data-role":role,class:role===event.role?"said":""},role===event.role?k$2(EventCell,{event}):null))))),trace.events.length>shown?k$2("p",null,k$2("button",{type:"button",onClick:()=>setShown(shown+2e3)},"Show more of ",plural(trace.events.length,"event"))):null)
}
function EventCell({event}) {
const {payload}=event
const words=["objective","text","reason","rationale","justification","name","words"].map(name=>asText(payload.get(name))).find(Boolean)??""
const verdict=asText(payload.get("verdict"))||asText(payload.get("outcome"))||asText(payload.get("status"))||asText(payload.get("code"))
const code=payload.get("exit_code")
return k$2($,null,k$2("strong",null,k$2(Text,null,event.event.replaceAll("_"," "))),verdict?k$2("span",{class:"verdict-word"}," ",k$2(Text,null,verdict)):null,code?.text?k$2("span",{class:"verdict-word"}," exit code ",code.text):null,asText(payload.get("tool"))?k$2($,null," ",k$2("code",null,k$2(Text,null,asText(payload.get("tool"))))):null,words?k$2("p",null,k$2(Text,null,words.slice(0,300))):null,asObject(payload.get("arguments")).size?k$2("p",null,k$2("code",null,k$2(Text,null,shortenArguments(payload.get("arguments"))))):null,event.before!==event.after?k$2("p",{class:"beside"},k$2(Text,null,`${event.before} → ${event.after}`)):null)
}
function ReferenceView({parts:[uri=""]}) {
const answer=useAnswer(()=>connection.ask({type:"locate",uri}),[uri,contents.value])
const found=answer.value?.found
const [,fragment]=uri.split("#",2)
A$1(()=>{
if (found) location.replace(recordLink(found.chain,found.row)+(fragment?link(fragment).slice(1):""))
},[found])
return k$2($,null,k$2("h1",null,"Reference"),answer.state==="failed"?k$2(Problem,{words:answer.words,retry:answer.retry}):null,answer.state==="loading"||found?k$2(Loading,{rows:4,words:"Looking for the record"}):null,answer.value&&!found?k$2($,null,k$2(NotHere,{what:"record",name:uri}),answer.value.isCut?k$2("p",null,"The page looked through the first 200,000 records only."):null,k$2("p",null,"Open the records that have it under ",k$2("a",{href:link("open")},"Verify a file"),", or look for it in your own ledger:"),k$2("p",null,k$2(Command,{isElsewhere:true},`aver show ${quoteName(uri)}`))):null)
}
var WIDTH=typeof window!=="undefined"&&window.innerWidth<720?360:720
var HEIGHT=220
var LEFT=44
var TOP=12
var toX=x=>LEFT+x*(WIDTH-LEFT-12)
var toY=y=>TOP+(1-y)*184
var TICKS=[0,.25,.5,.75,1]
function PointChart({points,limits,ends,label}) {
return k$2("div",{class:"plot-scroll",tabIndex:0,role:"region","aria-label":"Chart"},k$2("svg",{class:"plot",viewBox:`0 0 ${WIDTH} ${HEIGHT}`,role:"group","aria-label":label},k$2(Axes,{ends}),points.map(({x,y,low,high,sort,words,href},at)=>k$2("a",{key:at,href,tabIndex:-1,"aria-label":words},k$2("g",{class:`point ${sort}`},k$2("title",null,words),low===null||high===null?null:k$2("line",{x1:toX(x),x2:toX(x),y1:toY(low),y2:toY(high)}),sort==="denied"?k$2("path",{d:`M${toX(x)-4} ${toY(y)-4}l8 8m0 -8l-8 8`}):sort==="asked"?k$2("rect",{x:toX(x)-3.5,y:toY(y)-3.5,width:"7",height:"7"}):k$2("circle",{cx:toX(x),cy:toY(y),r:"4"})))),limits.map(y=>k$2("line",{key:y,class:"limit",x1:LEFT,x2:WIDTH-12,y1:toY(y),y2:toY(y)}))))
}
function Axes({ends}) {
return k$2("g",{class:"axes"},TICKS.map(tick=>k$2("g",{key:tick},k$2("line",{x1:LEFT,x2:WIDTH-12,y1:toY(tick),y2:toY(tick)}),k$2("text",{x:36,y:toY(tick)+4,"text-anchor":"end"},tick))),k$2("text",{x:LEFT,y:214},ends[0]),k$2("text",{x:WIDTH-12,y:214,"text-anchor":"end"},ends[1]))
}
function ReliabilityChart({bars,label}) {
return k$2("div",{class:"plot-scroll",tabIndex:0,role:"region","aria-label":"Chart"},k$2("svg",{class:"plot",viewBox:`0 0 ${WIDTH} ${HEIGHT}`,role:"img","aria-label":label},k$2(Axes,{ends:["predicted 0","predicted 1"]}),k$2("line",{class:"diagonal",x1:toX(0),y1:toY(0),x2:toX(1),y2:toY(1)}),bars.map(bar=>k$2("g",{key:bar.low,class:"point allowed"},k$2("title",null,`${bar.count} actions, predicted ${bar.predicted.toFixed(2)}, failed ${bar.happened.toFixed(2)}`),k$2("line",{x1:toX(bar.predicted),x2:toX(bar.predicted),y1:toY(bar.interval[0]),y2:toY(bar.interval[1])}),k$2("circle",{cx:toX(bar.predicted),cy:toY(bar.happened),r:Math.min(9,3+Math.sqrt(bar.count)/2)})))))
}
function ChartWithTable({chart,table}) {
const [isShown,setShown]=d$2(false)
return k$2("div",{class:"plot-box"},chart,k$2("p",null,k$2("button",{type:"button",class:"small","aria-expanded":isShown,onClick:()=>setShown(!isShown)},isShown?"Hide the table":"Show as a table")),isShown?k$2("div",{class:"scroll"},table):null)
}
var BINS=10
var NORMAL_95=1.96
function riskClass({interval,thresholds}) {
const [low,high]=Array.isArray(interval)?interval:[]
const [pass,skip]=[at(thresholds,"pass_below"),at(thresholds,"skip_above")]
if (!(low instanceof JsonNumber)||!(high instanceof JsonNumber)||!(pass instanceof JsonNumber)) return ""
if (high.value<=pass.value) return "low"
return skip instanceof JsonNumber&&low.value>skip.value?"high":"unsure"
}
var RiskReader=class {
decisions=[]
byRecord=new Map()
byGate=new Map()
add(record) {
const content=contentOf(record)
if (content===null) return
const kind=readKind(content)
if (kind==="gate.decision") {
const decision=readDecision(record)
if (decision!==null) this.decisions.push(describe(decision,content))
return
}
const result=at(content,"outcome","result")
if (kind==="gate.outcome") {
if (at(result,"features")!==void 0) this.byGate.set(asText(at(result,"gate_id")),"failed")
return
}
const decided=asText(at(readBlock(content)??void 0,"refs","decision"))
const status=asText(at(content,"outcome","status"))
if (decided&&(status==="success"||status==="failure")) this.byRecord.set(decided,status==="success"?"well":"failed")
}
outcomeOf(decision) {
if (refuses(decision)) return null
return this.byGate.get(decision.gateId)??this.byRecord.get(decision.id)??null
}
}
function describe(decision,content) {
const result=at(content,"outcome","result")
return {...decision,gateId:asText(at(result,"gate_id")),state:asText(at(result,"basis","state","blob","digest")),workspace:asText(at(result,"action","workspace")),line:actionLine(asObject(at(result,"action")))}
}
function reliability(cases) {
if (cases.length<30) return null
return Array.from({length:BINS},(_,index)=>{
const [low,high]=[index/BINS,(index+1)/BINS]
const inside=cases.filter(({score})=>score>=low&&(score<high||index===9&&score<=1))
const failed=inside.filter(({outcome})=>outcome==="failed").length
const predicted=inside.reduce((sum,{score})=>sum+score,0)/(inside.length||1)
return {low,high,count:inside.length,predicted,happened:inside.length?failed/inside.length:0,interval:wilson(failed,inside.length)}
}).filter(bin=>bin.count>0)
}
function wilson(failed,count) {
if (!count) return [0,1]
const rate=failed/count
const square=NORMAL_95**2
const middle=rate+square/(2*count)
const spread=NORMAL_95*Math.sqrt(rate*(1-rate)/count+square/(4*count**2))
const whole=1+square/count
return [Math.max(0,(middle-spread)/whole),Math.min(1,(middle+spread)/whole)]
}
var READ_MAX=2e4
var DRAWN_MAX=1e3
var ACTION_SHOWN=200
var LISTED=20
async function readRisk(report) {
const all=chainsOf(/^(?!(?:meta|keys)$)/)
const gates=chainsOf(/^gate\./)
const others=all.filter(id=>!gates.includes(id))
const isWhole=countRecords(all)<=READ_MAX
const reader=new RiskReader()
let records=0
const bad=[]
for (const chain of isWhole&&gates.length?all:gates) for await (const batch of readRecords(chain)) {
for (const record of batch) if (record instanceof Sealed) reader.add(record)
else bad.push(record)
report(records+=batch.length)
}
const decisions=reader.decisions.sort((one,other)=>one.at<other.at?-1:1)
const outcomes=new Map()
for (const decision of decisions) {
const outcome=reader.outcomeOf(decision)
if (outcome!==null) outcomes.set(decision,outcome)
}
return {decisions,outcomes,unread:isWhole?0:countRecords(others),words:unreadWords(bad,records)}
}
function RiskView(_) {
const [records,setRecords]=d$2(0)
const {value:reading,words,retry}=useAnswer(isCurrent=>readRisk(count=>{
if (!isCurrent()) throw new Left()
setRecords(count)
}),[contents.value])
const problem=words||reading?.words
return k$2("section",{class:"risk-view"},k$2("h1",null,"Risk"),problem?k$2(Problem,{words:problem,retry}):null,reading?k$2(Decisions,{reading}):words?null:k$2("div",{"aria-busy":"true"},k$2("p",{class:"beside",role:"status"},"Reading decisions: ",plural(records,"record")," so far …"),k$2("div",{class:"band placeholder tall"}),k$2("div",{class:"band placeholder tall"})))
}
function Decisions({reading}) {
const {decisions,unread,words}=reading
if (!decisions.length) return words?null:k$2(Empty,{command:"aver install claude-code"},"The gate has decided about nothing in these records. This makes it decide about the calls of coding agents:")
const refused=decisions.filter(one=>refuses(one)&&!isObserved(one)).length
const asked=decisions.filter(one=>one.decision==="human_review").length
const observed=decisions.filter(isObserved).length
return k$2($,null,k$2("p",{class:"sentence"},plural(decisions.length,"decision"),": ",count(decisions.length-refused-asked)," allowed, ",count(asked)," left to a person, ",count(refused)," denied.",observed?` ${plural(observed,"of them","of them")} only observed, and held nothing back.`:""),unread?k$2("p",{class:"strip"},"Only the gate's own chains were read: ",plural(unread,"other record")," would have to be searched for outcomes. A git history says more: ",k$2(Command,null,"aver gate report --git .")):null,k$2("h2",null,"Over time"),k$2(OverTime,{decisions}),k$2("h2",null,"How reliable"),k$2(Reliability,{reading}),k$2("h2",null,"What was learned"),k$2(Learned,{decisions}))
}
var sortOf=decision=>refuses(decision)?"denied":decision.decision==="human_review"?"asked":"allowed"
function addressOf({chain,sequence}) {
return link("c",chain??"",sequence??0)
}
function OverTime({decisions}) {
const [listed,setListed]=d$2(LISTED)
const box=T(null)
useRowKeys(box)
const scored=w$2(()=>decisions.filter(one=>one.score instanceof JsonNumber).slice(-1e3),[decisions])
const times=scored.map(one=>Date.parse(one.at)).filter(Number.isFinite)
const [first,last]=[Math.min(...times),Math.max(...times)]
const points=scored.map((decision,index)=>{
const time=Date.parse(decision.at)
const [low,high]=Array.isArray(decision.interval)?decision.interval.map(onScale):[]
return {x:last>first&&Number.isFinite(time)?(time-first)/(last-first):scored.length>1?index/(scored.length-1):.5,y:onScale(decision.score)??0,low:low??null,high:high??null,sort:sortOf(decision),words:visible(`${decision.at}: ${decisionLabel(decision.decision)}, ${decision.tool}, risk ${decision.score.text}`),href:addressOf(decision)}
})
const newest=scored.at(-1)
const [pass,skip]=["pass_below","skip_above"].map(name=>at(newest?.thresholds,name))
const limits=[pass,skip].map(value=>onScale(value??null)).filter(y=>y!==null)
const day=time=>Number.isFinite(time)?formatTime(new Date(time)).slice(0,16).replace("T"," "):""
const rows=[...decisions].reverse()
return k$2($,null,points.length?k$2("p",null,"The rules decide, and a score is only one of the things that they see. So a rule can allow an action with a high score, such as a known test, and another can ask a person about one with a low score, such as a deletion: ",k$2("em",null,"Why")," names the rule.",pass instanceof JsonNumber?k$2($,null," To a rule that asks about risk, it is low only if the whole interval is at most ",k$2(Score,{value:pass}),"; else it is unsure."):null,skip instanceof JsonNumber?k$2($,null," An action is denied by its risk if the whole interval is above ",k$2(Score,{value:skip}),"."):" No score denies anything by itself."):null,points.length?k$2(PointChart,{points,limits,ends:[day(first),day(last)],label:`${points.length} decisions over time, by risk from 0 to 1. The table below has all of them.`}):k$2("p",{class:"strip"},"No decision has a score: the rules alone decided."),k$2("p",{class:"beside legend"},k$2("span",{class:"good"},"● allowed")," ",k$2("span",{class:"warn"},"□ left to a person")," ",k$2("span",{class:"bad"},"✕ denied")," A line is the 90 % interval of the score. ",limits.length?"Dashes are at the limits named above. ":"",scored.length===DRAWN_MAX?`The chart has the latest ${count(DRAWN_MAX)}.`:""),k$2("div",{class:"scroll",ref:box},k$2("table",{class:"chains decisions"},k$2("thead",null,k$2("tr",null,k$2("th",{scope:"col"},"When"),k$2("th",{scope:"col"},"Decision"),k$2("th",{scope:"col"},"Action"),k$2("th",{scope:"col",class:"at-why"},"Why"),k$2("th",{scope:"col",class:"number"},"Risk"),k$2("th",{scope:"col",class:"number at-interval"},"90 % interval"),k$2("th",{scope:"col",class:"at-class"},"To the rules"))),k$2("tbody",null,rows.slice(0,listed).map((decision,place)=>k$2("tr",{key:decision.hash},k$2("td",null,k$2("a",{href:addressOf(decision),"data-row":true,tabIndex:place?-1:0},k$2(Time,null,decision.at))),k$2("td",null,k$2("span",{class:sortOf(decision)},isObserved(decision)?"observed: ":"",k$2(Text,null,decisionLabel(decision.decision)))),k$2("td",{class:"action"},k$2("code",null,k$2(Text,null,cutText(decision.line,ACTION_SHOWN)))),k$2("td",{class:"at-why"},decision.rules.length?k$2($,null,"by ",decision.rules.map(rule=>k$2("span",{key:rule},k$2("code",null,k$2(Text,null,rule))," "))):null,k$2(Text,null,shownReasons(decision).join("; "))),k$2("td",{class:"number"},k$2(Score,{value:decision.score})),k$2("td",{class:"number at-interval"},Array.isArray(decision.interval)?k$2($,null,k$2(Score,{value:decision.interval[0]})," to ",k$2(Score,{value:decision.interval[1]})):""),k$2("td",{class:"at-class"},riskClass(decision))))))),rows.length>listed?k$2("p",null,k$2("button",{type:"button",onClick:()=>setListed(listed+100)},"Show ",count(Math.min(100,rows.length-listed))," more")):null)
}
function Reliability({reading:{decisions,outcomes}}) {
const cases=decisions.flatMap(decision=>{
const outcome=outcomes.get(decision)
return outcome!==void 0&&decision.score instanceof JsonNumber?[{score:decision.score.value,outcome}]:[]
})
const bars=reliability(cases)
if (bars===null) return k$2("p",{class:"strip"},"Too few to say: ",plural(cases.length,"outcome")," of scored actions ",cases.length===1?"is":"are"," sealed here, and ",30," are needed. An outcome is sealed with the record of a call, and by ",k$2(Command,null,"aver gate outcome GATE_ID failed"))
return k$2($,null,k$2("p",null,plural(cases.length,"scored action")," with an outcome that is sealed here. On the dashed line, as many failed as the scores said."),k$2(ChartWithTable,{chart:k$2(ReliabilityChart,{bars,label:"Failed actions against predicted risk"}),table:k$2(Table,{heads:["Scores","Actions","Predicted","Failed","95 % interval"]},bars.map(bar=>k$2("tr",{key:bar.low},k$2("th",{scope:"row"},bar.low," to ",bar.high),k$2("td",null,bar.count),k$2("td",null,bar.predicted.toFixed(3)),k$2("td",null,bar.happened.toFixed(3)),k$2("td",null,bar.interval[0].toFixed(2)," to ",bar.interval[1].toFixed(2)))))}))
}
function Learned({decisions}) {
const {value:states}=useAnswer(async ()=>{
const found=new Map()
for (const {state,workspace,at:since} of decisions) {
if (!state) continue
const known=found.get(state)??{digest:state,workspace,since,uses:0,levels:[],isHere:false}
found.set(state,{...known,uses:known.uses+1})
}
const latest=[...found.values()].slice(-20).reverse()
return Promise.all(latest.map(async one=>({...one,...await readLevels(one.digest)})))
},[decisions])
if (states===null) return k$2("div",{class:"band placeholder","aria-busy":"true"})
if (!states.length) return k$2("p",{class:"strip"},"No decision names a learned state.")
return k$2($,null,states.map(one=>k$2("section",{key:one.digest,class:"learned"},k$2("h3",null,"State ",k$2(Hex,null,one.digest)," ",k$2("span",{class:"soft"},"used by ",plural(one.uses,"decision")," since ",k$2(Time,null,one.since))),!one.isHere?k$2("p",{class:"beside"},"Its content is not here: the blob is missing, damaged or too large."):null,one.isHere&&!one.levels.length?k$2("p",null,"Nothing was learned yet in ",k$2(Text,null,one.workspace||"this workspace"),": the gate used the prior that Aver ships."):null,one.levels.length?k$2(Table,{heads:["Kind of action","Level","Variance","Outcomes learned from"]},one.levels.map(([kind,level])=>k$2("tr",{key:kind},k$2("th",{scope:"row"},k$2(Text,null,kind)),["b","v","observations"].map(name=>k$2("td",{key:name,class:"figure"},k$2(Score,{value:at(level,name)})))))):null)))
}
async function readLevels(digest) {
const data=await readBlob(digest)
try {
return data===null?{levels:[],isHere:false}:{levels:[...asObject(at(readJson(data),"levels"))],isHere:true}
} catch (error) {
if (error instanceof BadInput) return {levels:[],isHere:false}
throw error
}
}
var PAGE=100
var HITS_MAX=500
function HitRow({hit,words,isFirst}) {
const item=T(null)
const [isNear,setNear]=d$2(Boolean(hit.title))
A$1(()=>{
if (isNear) return
const observer=new IntersectionObserver(seen=>{
if (seen.some(one=>one.isIntersecting)) setNear(true)
},{rootMargin:"400px"})
observer.observe(item.current)
return ()=>observer.disconnect()
},[isNear])
const read=useAnswer(async isCurrent=>hit.title?null:isNear?readHit(hit.chain,hit.place,words,isCurrent):new Promise(()=>{}),[hit.chain,hit.place,words,isNear])
const row=read.value?.row
const title=hit.title||(read.state==="loading"?"…":row===void 0?"this record cannot be read":row.problem||row.summary)
const excerpt=hit.excerpt??read.value?.excerpt
return k$2("li",{ref:item},k$2("a",{href:recordLink(hit.chain,hit),"data-row":true,tabIndex:isFirst?0:-1},k$2("strong",null,k$2(Text,null,title||hit.kind)),excerpt?k$2("span",{class:"excerpt"},k$2("bdi",null,visible(excerpt[0]),k$2("mark",null,visible(excerpt[1])),visible(excerpt[2]))):null,read.value?.hasHash===false?k$2("span",{class:"bad"},"This text does not have the hash that it was sealed with."):null,k$2("span",{class:"beside"},k$2("code",null,k$2(Text,null,hit.chain))," ",k$2(Text,null,`${hit.sequence} · ${hit.kind}${hit.tool?` · ${hit.tool}`:""}`),hit.at?k$2($,null," · ",k$2(Time,null,hit.at)):null)))
}
function SearchView({parts:[words=""]}) {
const [limit,setLimit]=d$2(PAGE)
const box=T(null)
const field=T(null)
const answer=useAnswer(()=>findRecords(words,limit),[words,limit,contents.value?.ledger,news.value.index])
useRowKeys(box)
A$1(()=>setLimit(PAGE),[words])
const found=answer.value
const shown=found?.hits.length??0
return k$2($,null,k$2("h1",null,"Search"),k$2("form",{class:"filters",onSubmit:event=>{
event.preventDefault()
const given=field.current?.value.trim()
if (given) location.hash=searchLink(given)
}},k$2("label",null,"Words ",k$2("input",{ref:field,type:"search",key:words,defaultValue:words,class:"wide"})),k$2("button",{type:"submit"},"Search")),k$2("p",{class:"beside"},"Words, ",k$2("code",null,"\"whole phrases\""),", ",k$2("code",null,"begin*"),", and ",k$2("code",null,"tool:")," ",k$2("code",null,"kind:")," ",k$2("code",null,"outcome:")," ",k$2("code",null,"path:")," ",k$2("code",null,"since:"),". All must fit. A ",k$2("code",null,"capsule://")," URI opens its record."),answer.state==="failed"?k$2(Problem,{words:answer.words,retry:answer.retry}):null,words&&answer.state==="loading"?k$2(Loading,{rows:8,words:"Searching"}):null,words?null:k$2(Empty,null,"Nothing was searched for yet. Write a word above."),found&&words?k$2("p",{role:"status"},plural(shown,"hit"),found.isCut?" so far":""," in ",plural(found.searched,"record"),"."," ",k$2("span",{class:"beside"},found.by==="index"?`Places from the server's index, texts from its records. Neither is proved until you open a hit.${found.behind?` ${count(found.behind)} records are not in it yet.`:""}`:found.isCut?"":"This page read every record.",found.ignored.map(one=>` ${visible(one)} has no word to search for and was ignored.`),found.shortened?` ${plural(found.shortened,"record")} with long texts: only their beginning is searched.`:"")):null,found&&words&&!shown?k$2(Empty,null,"Nothing has these words. Fewer words, or ",k$2("code",null,"begin*")," for a beginning, find more."):null,k$2("ul",{class:"hits",ref:box},found?.hits.map((hit,at)=>k$2(HitRow,{key:`${hit.chain}/${hit.place}`,hit,words,isFirst:at===0}))),found?.isCut&&shown&&shown%PAGE===0?k$2("p",null,shown<HITS_MAX?k$2("button",{type:"button",onClick:()=>setLimit(shown+PAGE)},"Show more"):`The first ${HITS_MAX} hits; narrow the search.`):null)
}
var CHOICES=200
function suggestChain(chains) {
const long=chains.filter(one=>(one.length??0)>2)
return (long.filter(one=>isOfSession(one.id)).sort((one,other)=>one.endedAt<other.endedAt?1:-1)[0]??long[0]??chains[0])?.id??""
}
function TamperView({parts:[given="",at=""]}) {
const chains=(contents.value?.chains??[]).filter(chain=>(chain.length??1)>0)
const [chain,setChain]=d$2(given||suggestChain(chains))
const [place,setPlace]=d$2(at===""?null:Number(at))
const start=Math.max(0,Math.floor((place??0)/CHOICES)*CHOICES)||0
const rows=useAnswer(()=>chain?connection.ask({type:"rows",chain,start,stop:start+CHOICES}):Promise.reject(new Error("There is no chain in it.")),[chain,start,contents.value])
const listed=rows.value?.rows??[]
const row=place===null?listed[1]??listed[0]:listed.find(one=>one.place===place)
const isNotHere=rows.state==="done"&&row===void 0&&(listed[0]?.place??start)===start
return k$2($,null,k$2("h1",null,"Try to change it"),k$2("p",null,"Believe nobody: change a record yourself, and see what the verification says. The page changes a copy in its memory and marks it. The records themselves stay untouched."),thing.value?.live?k$2(Empty,{command:"aver export --html --out DIR"},"A live ledger is not copied into the page. Export it, and open the folder under ",k$2("a",{href:link("open")},"Verify a file"),"."):null,!thing.value?.live&&!["bundle","chain"].includes(contents.value?.format??"")?k$2(Empty,{command:"aver export --out DIR"},"Only the records of a bundle or of one chain can be changed here."):null,changed.value?k$2("p",{class:"strip"},"This is a changed copy already. A further change comes on top of it."):null,!thing.value?.live&&["bundle","chain"].includes(contents.value?.format??"")?k$2($,null,k$2("div",{class:"filters"},k$2("label",null,"Chain ",k$2("select",{value:chain,onChange:event=>{
setChain(event.currentTarget.value)
setPlace(null)
}},chains.map(one=>k$2("option",{key:one.id,value:one.id},visible(one.id))))),k$2("label",null,"Place ",k$2("input",{type:"number",min:0,value:place??row?.place??0,onChange:event=>setPlace(Number(event.currentTarget.value))})),k$2("label",null,"Record ",k$2("select",{value:String(row?.place??""),onChange:event=>setPlace(Number(event.currentTarget.value))},listed.map(one=>k$2("option",{key:one.place,value:String(one.place)},visible(`${one.sequence||one.place}: ${cutText(one.summary,60)}`)))))),rows.state==="failed"?k$2(Problem,{words:rows.words,retry:rows.retry}):null,rows.state==="loading"?k$2(Loading,{rows:3,words:"Reading the chain"}):null,isNotHere?k$2(NotHere,{what:"record",name:`${chain} ${place??0}`}):null,row?k$2("p",{class:"beside"},k$2(Text,null,`${row.kind} · ${row.summary}`)," · ",k$2("a",{href:link("c",chain,`p${row.place}`)},"open it")):null,row?k$2(TryToChange,{chain,place:row.place,sequence:row.sequence||String(row.place),title:"What to do with it"}):null):null)
}
var VIEWS=[{route:"",title:"Overview",letter:"o",rail:"main",needs:"records",Module:OverviewView,isOnPhone:true},{route:"sessions",title:"Sessions",letter:"s",rail:"main",needs:"records",Module:SessionsView,isOnPhone:true},{route:"approvals",title:"Approvals",letter:"a",rail:"main",needs:"records",Module:ApprovalsView,isOnPhone:true},{route:"chains",title:"Chains",letter:"c",rail:"main",needs:"records",Module:ChainsView,isOnPhone:true},{route:"risk",title:"Risk",letter:"r",rail:"main",needs:"records",Module:RiskView},{route:"open",title:"Verify a file",letter:"f",rail:"main",needs:"nothing",Module:OpenView},{route:"keys",title:"Keys",letter:"k",rail:"more",needs:"door",Module:KeysView},{route:"acts",title:"Acts",letter:"i",rail:"more",needs:"records",Module:ActsView},{route:"protocol",title:"Protocol",letter:"p",rail:"more",needs:"records",Module:ProtocolView},{route:"meta",title:"Meta",letter:"m",rail:"more",needs:"records",Module:MetaView},{route:"try",title:"Try to change it",letter:"t",rail:"more",needs:"records",Module:TamperView},{route:"search",title:"Search",letter:"",rail:"none",needs:"records",Module:SearchView},{route:"ref",title:"Reference",letter:"",rail:"none",needs:"records",Module:ReferenceView},{route:"more",title:"More",letter:"",rail:"none",needs:"nothing",Module:MoreView},{route:"chain",title:"Chain",letter:"",rail:"none",needs:"records",Module:ChainView,within:"chains"},{route:"s",title:"Session",letter:"",rail:"none",needs:"records",Module:SessionView,within:"sessions"},{route:"files",title:"Files",letter:"",rail:"none",needs:"records",Module:FilesView,within:"sessions"},{route:"c",title:"Record",letter:"",rail:"none",needs:"records",Module:CapsuleView,within:"chains"}]
function findView(route) {
return VIEWS.find(view=>view.route===route)??VIEWS[0]
}
var isHelpOpen=y$1(false)
var KEYS=[["/","search"],["j k","next and previous row or record"],["J K","next and previous turn of a session"],["e","next edit of a session"],["x","next failure or denial"],["b","next break of a chain"],["n N","next and previous hit"],["Enter","open"],["Esc","back"],["v","verify again"],["?","this help"]]
function Rows({rows}) {
return k$2("table",{class:"plain keys-table"},k$2("tbody",null,rows.map(([keys,words])=>k$2("tr",{key:keys},k$2("th",{scope:"row"},keys.split(" ").map(key=>k$2("kbd",{key},key))),k$2("td",null,words)))))
}
function Help() {
const dialog=T(null)
A$1(()=>{
if (isHelpOpen.value) dialog.current?.showModal()
else dialog.current?.close()
},[isHelpOpen.value])
const views=VIEWS.filter(view=>view.letter).map(view=>[`g ${view.letter}`,view.title])
return k$2("dialog",{ref:dialog,"aria-label":"Keys of the keyboard",onClose:()=>{
isHelpOpen.value=false
},onKeyDown:event=>{
event.stopPropagation()
}},k$2("div",{class:"head"},k$2("h2",null,"Keys of the keyboard"),k$2("button",{type:"button",class:"small",onClick:()=>{
isHelpOpen.value=false
}},"Close")),k$2("div",{class:"columns"},k$2(Rows,{rows:KEYS}),k$2(Rows,{rows:views})))
}
var NEXT={auto:"dark",dark:"light",light:"auto"}
function LiveDot() {
if (!thing.value?.live) return null
const state=liveState.value
const words=state.isLive?"live":"not live"
return k$2("span",{class:`live ${state.isLive?"on":"off"}`,title:words},k$2("span",{class:"dot","aria-hidden":"true"}),k$2("span",{class:"live-word"},words))
}
function Bar() {
const [view="",query=""]=route.value
return k$2("header",{class:"bar"},k$2("a",{class:"name",href:link()},"Aver"),k$2("span",{class:"open-name"},k$2(Text,null,contents.value?.name??"")),k$2(LiveDot,null),k$2("form",{role:"search",class:"search",onSubmit:event=>{
event.preventDefault()
const words=new FormData(event.currentTarget).get("words")
if (typeof words==="string"&&words.trim()) location.hash=searchLink(words.trim())
}},contents.value===null?null:k$2($,null,k$2("input",{id:"search",name:"words",type:"search",placeholder:"Search","aria-label":"Search the records",autocomplete:"off",spellcheck:false,key:view==="search"?query:"",defaultValue:view==="search"?query:""}),k$2("kbd",{"aria-hidden":"true"},"/"))),k$2(VerdictChip,null),k$2("button",{type:"button",class:"small","aria-label":`Times are in ${usesUtc.value?"UTC":"local time"}; change`,onClick:()=>{
usesUtc.value=!usesUtc.value
}},usesUtc.value?"UTC":"local"),k$2("button",{type:"button",class:"small","aria-label":`Theme: ${theme.value}; change`,onClick:()=>{
theme.value=NEXT[theme.value]
}},theme.value),k$2("button",{type:"button",class:"small help",onClick:()=>{
isHelpOpen.value=true
},"aria-label":"Keys of the keyboard"},"?"))
}
function currentEntry() {
const view=contents.value===null&&findView(route.value[0]??"").needs==="records"?findView("open"):findView(route.value[0]??"")
return view.within??view.route
}
function Entry({view,isCurrent=currentEntry()===view.route}) {
const number=view.route==="approvals"?waiting.value:0
return k$2("a",{href:link(...view.route?[view.route]:[]),"aria-current":isCurrent?"page":void 0},view.title,number?k$2("span",{class:"number-of","aria-label":`${number} waiting`},number):null)
}
function Rail() {
const shown=VIEWS.filter(view=>view.needs!=="records"||contents.value!==null)
return k$2("nav",{class:"rail","aria-label":"Views"},shown.filter(view=>view.rail==="main").map(view=>k$2(Entry,{key:view.route,view})),k$2("hr",null),shown.filter(view=>view.rail==="more").map(view=>k$2(Entry,{key:view.route,view})))
}
function BottomBar() {
const isOpen=contents.value!==null
const current=isOpen&&!findView(currentEntry()).isOnPhone?"more":currentEntry()
return k$2("nav",{class:"bottom","aria-label":"Views, short"},(isOpen?[...VIEWS.filter(view=>view.isOnPhone),findView("more")]:VIEWS.filter(view=>view.needs!=="records"&&view.rail!=="none")).map(view=>k$2(Entry,{key:view.route,view,isCurrent:view.route===current})))
}
function Strips() {
const state=liveState.value
return k$2($,null,k$2(CopyStrip,null),problem.value&&contents.value!==null?k$2("div",{class:"finding failed",role:"alert"},k$2("p",null,k$2(Text,null,problem.value))):null,opening.value&&contents.value!==null?k$2("p",{class:"strip",role:"status"},k$2(Text,null,opening.value)," …"):null,home$1.value!==null&&!changed.value&&thing.value!==home$1.value?k$2("p",{class:"strip",role:"status"},"You look at ",k$2(Text,null,thing.value?.name??"nothing"),", which you opened here."," ",k$2("button",{type:"button",class:"small",onClick:()=>void openThing(home$1.value)},"Back to ",k$2(Text,null,home$1.value.name))):null,thing.value?.live&&!state.isLive?k$2("p",{class:"strip stale",role:"status"},"Not live since ",k$2(Time,{short:true},state.since),": ",k$2(Text,null,state.words||"the server does not answer"),". What you see is of that time."," ",k$2("button",{type:"button",class:"small",onClick:()=>reconnect()},"Try again")):null)
}
var WAIT_FIRST=500
var WAIT_MAX=15e3
var SILENCE_MAX=4e4
var EVENT_MAX=1024**2
var LiveStream=class {
following=null
lastEvent=""
constructor(api,listener) {
this.api=api
this.listener=listener
}
async follow() {
this.following?.abort()
const mine=new AbortController()
this.following=mine
for (let wait=WAIT_FIRST; !mine.signal.aborted; wait=Math.min(wait*2,WAIT_MAX)) {
try {
await this.read(mine.signal,()=>{
wait=WAIT_FIRST
})
this.listener.onState(false,"the server ended the stream")
} catch (error) {
if (mine.signal.aborted) return
this.listener.onState(false,error.message)
if (error instanceof ApiError&&(error.status===401||error.status===403)) return
}
await new Promise(resolve=>setTimeout(resolve,wait))
}
}
async read(signal,onWord) {
const silence=new AbortController()
let timer=setTimeout(()=>silence.abort(),SILENCE_MAX)
const headers={Accept:"text/event-stream",...this.lastEvent?{"Last-Event-ID":this.lastEvent}:{}}
try {
const answer=await this.api.ask("live",{headers,signal:AbortSignal.any([signal,silence.signal])})
this.listener.onState(true,"")
const decoder=new TextDecoder()
let rest=""
for (const reader=answer.body.getReader();;) {
const {done,value}=await reader.read()
if (done) return
onWord()
clearTimeout(timer)
timer=setTimeout(()=>silence.abort(),SILENCE_MAX)
rest=(rest+decoder.decode(value,{stream:true})).replaceAll("\r\n","\n")
const events=rest.split("\n\n")
rest=events.pop()??""
if (rest.length>EVENT_MAX) throw new Error("the server's stream has no events")
for (const event of events) this.take(event)
}
} catch (error) {
if (silence.signal.aborted) throw new Error("the server fell silent")
throw error
} finally {
clearTimeout(timer)
}
}
take(event) {
let sort=""
for (const line of event.split("\n")) if (line.startsWith("event:")) sort=line.slice(6).trim()
else if (line.startsWith("id:")) this.lastEvent=line.slice(3).trim()
if (sort==="heads"||sort==="approvals"||sort==="index") this.listener.onNews(sort)
}
}
var SITE_MAX=1024**3
function loadScript(path,receive) {
return new Promise((resolve,reject)=>{
let isDone=false
receive(result=>{
isDone=true
resolve(result)
})
const element=document.createElement("script")
element.src=scriptUrl(path)
element.addEventListener("load",()=>{
element.remove()
if (!isDone) reject(new NotJudgedHere(`${path} holds no data`))
})
element.addEventListener("error",()=>reject(missing(path)))
document.head.append(element)
})
}
async function openSite(progress) {
const hands=globalThis
const areCopies=location.protocol==="file:"
const files=[]
let names
if (areCopies) names=await loadScript(NAMES$2,done=>{
hands.averNames=done
})
else {
const list=await fetchFile(NAMES$2)
if (list===null) throw missing(NAMES$2)
const listed=await readNames(new BlobSource(list))
names=[...new Set([INDEX,HEAD$1,...listed,...listed.map((_,at)=>twinOf(at))])]
files.push([NAMES$2,list],["explorer/app.js",new Blob()])
}
let size=0
for (const [at,name] of names.entries()) {
const blob=areCopies?await loadTwin(at,name,hands):await fetchFile(name)
size+=blob?.size??0
if (size>SITE_MAX) throw new NotJudgedHere("this site is larger than a page can hold; run: aver verify DIRECTORY")
if (blob!==null) files.push([name,blob])
progress(at+1,names.length)
}
return {name:decodeURIComponent(location.pathname.split("/").at(-2)??"")||location.host||"/",files,isFolder:true,...areCopies?{areCopies}:{site:new URL(".",location.href).href}}
}
function missing(path) {
return new NotJudgedHere(`${path} is missing: this site is not whole`)
}
async function loadTwin(at,name,hands) {
const path=twinOf(at)
const found=await loadScript(path,done=>{
hands.averFile=(given,data)=>done({name:given,data})
})
if (found.name!==name) throw new NotJudgedHere(`${path} holds ${found.name}, not ${name}`)
const packed=decodeBase64(found.data)
if (packed===null) throw new NotJudgedHere(`${path} is damaged`)
const unpacked=new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))
return new Response(unpacked).blob()
}
async function fetchFile(name) {
const parts=name.split("/")
if (!parts.every(isFileName)) return null
const answer=await fetch(parts.map(encodeURIComponent).join("/"),{cache:"no-store"})
if (answer.status===404) return null
if (!answer.ok) throw new NotJudgedHere(`${name} cannot be read: the server says ${answer.status}`)
return answer.blob()
}
var NEWS_PAUSE=400
var REST=5
async function openDoor() {
const door=document.documentElement.dataset["door"]
const isLive=door==="live"||secrets.token!==""
const isLatest=takeTurn()
problem.value=""
retryOpening.value=null
if (door==="site") opening.value="Reading this site"
else if (isLive) opening.value="Asking the server"
try {
if (door==="site") {
warmWorkers()
home$1.value=await openSite((done,total)=>{
if (isLatest()) opening.value=`Reading this site: ${done} of ${total} files`
})
if (isLatest()) await openThing(home$1.value)
} else if (isLive) await openLive(isLatest)
} catch (error) {
if (!isLatest()) return
opening.value=""
problem.value=error.message
retryOpening.value=()=>void openDoor()
}
}
async function openLive(isLatest) {
await askOtherTabs()
if (!secrets.token) throw new Error("This page has no token. Open the link that aver serve prints when it starts.")
const access={origin:location.origin,token:secrets.token}
const api=new Api(access)
const about=await api.json("about")
doorServer.value={api,about}
answerOtherTabs(()=>isStreaming)
liveState.value={isLive:true,since:new Date().toISOString(),words:""}
home$1.value={name:`ledger ${about.ledger.slice(0,8)}${about.tenant==="default"?"":` · ${about.tenant}`}`,files:[],isFolder:true,live:access}
const stream=new LiveStream(api,{onNews:sort=>catchUp(sort),onState:(isLive,words)=>{
isStreaming=isLive
noteState(isLive,words)
}})
setLiveSteps(()=>void stream.follow(),isStill=>pinByLink(api,isStill))
const opened=isLatest()?openThing(home$1.value):void 0
stream.follow()
await opened
}
async function pinByLink(api,isStill) {
if (!secrets.keys) return
const raw=await api.bytes("keys")
if (!isStill()) return
if (sha256Hex(raw)!==secrets.keys.toLowerCase()) {
problem.value="The server's list of keys is not the one that its link vouches for. None was pinned: compare them on Keys."
return
}
await Promise.all(readPins(raw).map(key=>pinKey(key,"by the link that aver serve printed")))
forgetKeys()
}
function noteState(isLive,words) {
const before=liveState.value
if (isLive&&before.isLive) return
if (isLive) for (const sort of ["heads","approvals","index"]) catchUp(sort)
liveState.value={isLive,words,since:before.isLive===isLive?before.since:new Date().toISOString()}
}
var LOOK_AGAIN=5e3
var isStreaming=false
var fresh=new Set()
var pause
function catchUp(sort) {
fresh.add(sort)
pause??=setTimeout(()=>{
pause=void 0
const seen=[...fresh]
fresh.clear()
takeNews(seen).then(()=>{
if (isStreaming) noteState(true,"")
},error=>{
noteState(false,error.message)
setTimeout(()=>{
for (const sort of seen) catchUp(sort)
},LOOK_AGAIN)
})
},NEWS_PAUSE)
}
async function takeNews(sorts) {
const isOpen=contents.value!==null&&thing.value?.live!==void 0
const hasGrown=sorts.includes("heads")&&isOpen&&await refreshContents()
const next={...news.value}
for (const sort of sorts) next[sort]++
news.value=next
if (hasGrown) planVerification()
}
var planned
var lastTook=0
function planVerification() {
if (totalRecords.value>2e4||planned!==void 0) return
planned=setTimeout(()=>{
planned=void 0
if (!thing.value?.live) return
if (judgement.value.state==="working") return planVerification()
const start=performance.now()
verifyThing().then(()=>{
lastTook=performance.now()-start
})
},Math.max(1e3,lastTook*REST))
}
function CurrentView() {
const [name="",...parts]=route.value
const [error]=O$1()
if (error) return k$2(Problem,{words:`This view broke down: ${error.message}`,retry:()=>location.reload()})
const view=findView(name)
if (contents.value===null&&opening.value&&view.needs!=="nothing") return k$2(Opening,null)
if (contents.value===null&&view.needs==="records") return k$2(OpenView,{parts:[]})
if (name!==view.route) return k$2($,null,k$2("h1",null,"No such page"),k$2("p",{class:"strip"},"The Explorer has no view ",k$2("code",null,k$2(Text,null,name)),". ",k$2("a",{href:link()},"Overview")))
const {Module}=view
return k$2(Module,{key:[name,parts[0]].join("/"),parts})
}
function Opening() {
return k$2("div",{"aria-busy":"true"},k$2("h1",null,opening.value),k$2("div",{class:"band placeholder tall"}),k$2("div",{class:"band placeholder"}))
}
function App() {
const main=T(null)
const address=route.value.slice(0,2).join("/")
const isFirst=T(true)
F$1(()=>{
if (!isFirst.current&&main.current) returnFocus(main.current)
isFirst.current=false
},[address])
return k$2($,null,k$2("a",{class:"skip",href:"#main",onClick:event=>{
event.preventDefault()
main.current?.focus()
}},"Skip to the content"),k$2(Bar,null),k$2(Rail,null),k$2("main",{id:"main",ref:main,tabIndex:-1,class:changed.value?"is-copy":""},k$2(Strips,null),k$2(CurrentView,{key:address})),k$2(BottomBar,null),k$2(Help,null),k$2("p",{class:"hidden",role:"status","aria-live":"polite"},spoken.value))
}
function startPage() {
applyPreferences()
watchApprovals()
x(()=>{
const view=findView(route.value[0]??"")
document.title=contents.value===null?"Aver Explorer":`${view.title} · ${contents.value.name} · Aver Explorer`
})
for (const name of ["dragover","drop"]) addEventListener(name,event=>event.preventDefault())
addEventListener("scroll",yieldToScrolling,{capture:true,passive:true})
listenToKeys(letter=>{
const view=VIEWS.find(one=>one.letter===letter)
if (view!==void 0) location.hash=link(...view.route?[view.route]:[])
return view!==void 0
},{"?":()=>{
isHelpOpen.value=true
},v:()=>void verifyThing(),"/":()=>document.getElementById("search")?.focus(),Escape:()=>{
if (route.value[0]) history.back()
}})
Q(k$2(App,null),document.getElementById("app"))
openDoor()
}
if (typeof document==="undefined") startWorker$1()
else startPage()
}
averExplorer();

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

preact

The MIT License (MIT)

Copyright (c) 2015-present Jason Miller

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.

@preact/signals

The MIT License (MIT)

Copyright (c) 2022-present Preact Team

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.

@preact/signals-core

The MIT License (MIT)

Copyright (c) 2022-present Preact Team

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
*/
